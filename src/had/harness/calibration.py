"""Calibration: the most sensitive thresholds whose warnings stay rare where the agent does well."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

from had.harness.compose import Harness
from had.harness.part import Part
from had.records import Episode, HarnessFacts, HarnessReport

MAX_SHARE = 0.05  # of the turns of successful episodes on which a warning may fire (paper)
MIN_EPISODES = 10  # fewer give a few hundred turns at most, in which 5 % is a handful
_SILENT = HarnessReport()


@dataclass(frozen=True)
class Candidates:
    """The values to try for the threshold of one part.

    Attributes:
        part: name of the part in the harness, e.g. `stall`.
        threshold: its argument, e.g. `window`.
        values: the most sensitive value first.
    """

    part: str
    threshold: str
    values: Sequence[int]

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", tuple(self.values))
        if not self.values or len(set(self.values)) < len(self.values):
            raise ValueError(
                f"candidates of {self.name}: expected distinct values, the most sensitive first, "
                f"got {self.values}"
            )

    @property
    def name(self) -> str:
        """`part.threshold`."""
        return f"{self.part}.{self.threshold}"


@dataclass(frozen=True)
class Trial:
    """How often the warning fires with one value of one threshold.

    Attributes:
        name: `part.threshold`.
        value: the value tried.
        num_fired, num_turns: turns with the warning, and all turns.
        is_chosen: this is the most sensitive value that is rare enough.
    """

    name: str
    value: int
    num_fired: int
    num_turns: int
    is_chosen: bool = False

    @property
    def share(self) -> float:
        """Share of the turns on which the warning fires."""
        return self.num_fired / self.num_turns


@dataclass(frozen=True)
class Calibration:
    """The outcome.

    Attributes:
        harness: the harness with the chosen thresholds, all else as before.
        thresholds: `part.threshold` -> chosen value.
        trials: every value of every threshold, in the order of the candidates.
        num_episodes, num_successes, num_turns: episodes given, the successful ones, and the turns of those.
    """

    harness: Harness
    thresholds: Mapping[str, int]
    trials: tuple[Trial, ...]
    num_episodes: int
    num_successes: int
    num_turns: int


def calibrate(
    episodes: Sequence[Episode],
    harness: Harness,
    candidates: Sequence[Candidates],
    max_share: float = MAX_SHARE,
    min_episodes: int = MIN_EPISODES,
) -> Calibration:
    """Choose the thresholds of a harness (spec section 4).

    Whether a warning fires is asked of the part itself, at the facts of every turn: what was shown while the
    episodes were played does not matter.

    Args:
        episodes: of the untrained student on validation tasks; only the successful ones count.
        harness: the harness to set.
        candidates: the thresholds and their values.
        max_share: the largest share of turns on which a warning may fire.
        min_episodes: successful episodes below which nothing is decided.

    Raises:
        ValueError: too few successful episodes, no value of a threshold is rare enough, a part or a threshold
            that the harness does not have, or settings out of range.
    """
    if not 0 <= max_share <= 1 or min_episodes < 1:
        raise ValueError(
            "calibration: expected 0 <= max_share <= 1 and min_episodes >= 1, "
            f"got {max_share} and {min_episodes}"
        )
    successes = [episode for episode in episodes if episode.is_won]
    if len(successes) < min_episodes:
        raise ValueError(
            f"calibration: expected at least {min_episodes} successful episodes, got {len(successes)} "
            f"of {len(episodes)}; play more tasks or each task more often (num_tasks, num_repeats), start "
            "from a student that succeeds more often, or lower min_episodes"
        )
    turns = [turn.facts for episode in successes for turn in episode.turns]
    parts, trials, thresholds = dict(harness.parts), [], {}
    for tried in candidates:
        part = _part(harness, tried)
        outcomes = _try_values(part, tried, turns, max_share)
        trials += outcomes
        thresholds[tried.name] = next(trial.value for trial in outcomes if trial.is_chosen)
        parts[tried.part] = _with_threshold(parts[tried.part], tried.threshold, thresholds[tried.name])
    changed = replace(harness, parts=parts)
    return Calibration(changed, thresholds, tuple(trials), len(episodes), len(successes), len(turns))


def _part(harness: Harness, tried: Candidates) -> Part:
    if tried.part not in harness.parts:
        raise ValueError(
            f"candidates of {tried.name}: expected a part of the harness, one of {list(harness.parts)}; "
            "leave out the candidates of a part that the harness does not have"
        )
    part: Any = harness.parts[tried.part]
    known = [item.name for item in fields(part)] if is_dataclass(part) else []
    if tried.threshold not in known:
        raise ValueError(f"candidates of {tried.name}: the part has the arguments {known}")
    return harness.parts[tried.part]


def _with_threshold(part: Any, threshold: str, value: int) -> Part:
    changed: Part = replace(part, **{threshold: value})
    return changed


def _try_values(
    part: Part, tried: Candidates, turns: Sequence[HarnessFacts], max_share: float
) -> list[Trial]:
    """The trials of one threshold, the chosen one marked."""
    trials: list[Trial] = []
    has_chosen = False
    for value in tried.values:
        candidate = _with_threshold(part, tried.threshold, value)
        num_fired = sum(candidate.warn(facts, _SILENT) != _SILENT for facts in turns)
        is_chosen = not has_chosen and num_fired <= max_share * len(turns)
        has_chosen = has_chosen or is_chosen
        trials.append(Trial(tried.name, value, num_fired, len(turns), is_chosen))
    if not has_chosen:
        shares = ", ".join(f"{trial.value}: {trial.share:.1%}" for trial in trials)
        raise ValueError(
            f"calibration of {tried.name}: no candidate fires on at most {max_share:.1%} of the {len(turns)} "
            f"turns ({shares}). Add less sensitive candidates, or calibrate on a student that succeeds "
            "without so many warnings"
        )
    return trials
