"""Harness utilization: does the agent act as the harness's report asks (paper Eq. 50, spec section 8).

HU = (1/|C|) Σ_c (1/|S_c|) Σ_{s in S_c} r_c(s): for each component c the share of its applicable turns S_c
that obey its rule r_c, then the unweighted mean over the components C that have an applicable turn.

| component | applicable turns | obeys when |
|---|---|---|
| available | every turn, also those without a command | the command is admissible |
| situation | turns with a command of the grammar | it uses no object that is not held |
| budget | of those: the urge is on | not look, inventory, examine, help |
| failure | of those: failures are reported | the command is none of the reported ones |
| stall | of those: a stall is reported | a state new to the episode, or success, within the next five turns |

The five turns of *stall* are the stalled turn itself (its own command is the first chance) and the four that
follow, whatever their commands look like. A window that the end of the episode cuts short is still
applicable: without a new state or success in it, it does not obey. Warnings count as the full harness would
have given them, whatever was shown.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields

import numpy as np

from had.metrics.bootstrap import ReplicatedSums, Statistic
from had.metrics.counts import NO_CASE, FloatArray, Share, ratio
from had.metrics.intervals import Estimate, wilson
from had.records import Episode

STALL_WINDOW_TURNS = 5  # of the rule (paper's Appendix B.3), not the harness's own threshold


@dataclass(frozen=True)
class UtilizationCounts:
    """Obeying turns of applicable turns, per component."""

    available: Share = NO_CASE
    situation: Share = NO_CASE
    budget: Share = NO_CASE
    failure: Share = NO_CASE
    stall: Share = NO_CASE


COMPONENTS = tuple(field.name for field in fields(UtilizationCounts))
NUM_COUNTS = 2 * len(COMPONENTS)


def count_utilization(episodes: Iterable[Episode]) -> UtilizationCounts:
    """Count the turns of all episodes, of failed ones too: those turns were played."""
    obeyed: dict[str, list[bool]] = {name: [] for name in COMPONENTS}
    for episode in episodes:
        for index in range(len(episode.turns)):
            for name, is_obeyed in _judge(episode, index).items():
                obeyed[name].append(is_obeyed)
    return UtilizationCounts(**{name: Share(sum(flags), len(flags)) for name, flags in obeyed.items()})


def _judge(episode: Episode, index: int) -> dict[str, bool]:
    """Whether a turn obeys, for each component that applies to it."""
    turn = episode.turns[index]
    verdicts = {"available": turn.is_available}
    if turn.response.action is None or not turn.is_in_grammar:
        return verdicts
    verdicts["situation"] = not turn.is_misused
    if turn.report.is_urged:
        verdicts["budget"] = not turn.is_idle
    if turn.report.failures:
        verdicts["failure"] = turn.response.action not in turn.report.failures
    if turn.report.is_stalled:
        verdicts["stall"] = _escapes(episode, index)
    return verdicts


def _escapes(episode: Episode, start: int) -> bool:
    """A new state or success within the window of turns that begins with turn `start`."""
    stop = start + STALL_WINDOW_TURNS
    has_won = episode.is_won and len(episode.turns) <= stop
    return has_won or any(turn.is_new_state for turn in episode.turns[start:stop])


def _component(index: int) -> Statistic:
    return lambda sums: ratio(sums[..., 2 * index], sums[..., 2 * index + 1])


def utilization(sums: FloatArray) -> FloatArray:
    """HU of summed counts [..., 10] (hits, total per component); NaN where no component is applicable."""
    shares = ratio(sums[..., 0::2], sums[..., 1::2])
    return ratio(np.nansum(shares, axis=-1), np.sum(~np.isnan(shares), axis=-1))


STATISTICS: dict[str, Statistic] = {
    "hu": utilization,
    **{f"hu_{name}": _component(i) for i, name in enumerate(COMPONENTS)},
}


def utilization_estimates(sums: ReplicatedSums) -> dict[str, Estimate]:
    """Estimates `hu` (bootstrap over tasks; count: turns) and `hu_<component>` (Wilson).

    Wilson takes turns as independent; turns of one episode are not, so the limits of a component are rather
    too narrow. Those of hu are not affected: they come from resampling whole tasks.
    """
    pairs = sums.sums_D.astype(int).reshape(-1, 2)
    shares = {name: (int(hits), int(total)) for name, (hits, total) in zip(COMPONENTS, pairs, strict=True)}
    return {
        "hu": sums.estimate(utilization, shares["available"][1]),
        **{f"hu_{name}": wilson(*share) for name, share in shares.items()},
    }
