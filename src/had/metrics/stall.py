"""Stalls: how many episodes have none, and how many stalls are overcome (spec section 8; paper's Table 3)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from itertools import groupby

from had.metrics.bootstrap import Statistic
from had.metrics.counts import NO_CASE, FloatArray, Share, ratio
from had.metrics.intervals import Estimate, wilson
from had.records import Episode


@dataclass(frozen=True)
class StallCounts:
    """Two shares.

    Attributes:
        prevention: episodes in which no stall was reported, of all episodes. A failed episode counts as not
            prevented,
            as it counts as not won: what would have followed is not known.
        recovery: runs of stalled turns that a new state or success followed, of all maximal runs of stalled
            turns.
    """

    prevention: Share = NO_CASE
    recovery: Share = NO_CASE


NUM_COUNTS = 2 * len(fields(StallCounts))

STATISTICS: dict[str, Statistic] = {
    "prevention": lambda sums: ratio(sums[..., 0], sums[..., 1]),
    "recovery": lambda sums: ratio(sums[..., 2], sums[..., 3]),
}


def count_stalls(episodes: Iterable[Episode]) -> StallCounts:
    """Count episodes and runs of stalled turns; see `StallCounts`."""
    counts = StallCounts()
    for episode in episodes:
        runs = stalled_runs([turn.report.is_stalled for turn in episode.turns])
        recovered = sum(_is_recovered(episode, last) for _, last in runs)
        counts = StallCounts(
            prevention=counts.prevention + Share(int(not runs and not episode.is_failed), 1),
            recovery=counts.recovery + Share(recovered, len(runs)),
        )
    return counts


def stalled_runs(is_stalled: Sequence[bool]) -> list[tuple[int, int]]:
    """(first, last) turn of each maximal run of stalled turns."""
    runs = []
    for flag, group in groupby(range(len(is_stalled)), key=is_stalled.__getitem__):
        turns = list(group)
        if flag:
            runs.append((turns[0], turns[-1]))
    return runs


def _is_recovered(episode: Episode, last: int) -> bool:
    """Success, or a new state by the command of the run's last turn (that is what ends a run) or later."""
    return episode.is_won or any(turn.is_new_state for turn in episode.turns[last:])


def stall_estimates(sums_D: FloatArray) -> dict[str, Estimate]:
    """Estimates `prevention` (count: episodes) and `recovery` (count: runs), with Wilson intervals."""
    hits_prevention, num_episodes, hits_recovery, num_runs = (int(n) for n in sums_D)
    return {
        "prevention": wilson(hits_prevention, num_episodes),
        "recovery": wilson(hits_recovery, num_runs),
    }
