"""Part *failure*: commands that had no effect in this same state, and how often."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from had.harness.part import BEHAVIOR_MONITORING, Draw, check_wordings
from had.records import HarnessFacts, HarnessReport

WORDINGS = (
    "Without effect in this state: {failures}.",
    "These had no effect here: {failures}.",
    "Already tried here in vain: {failures}.",
)
MAX_SHOWN_CHARACTERS = 80  # a reply may hold a "command" of thousands of characters


def _shown(command: str) -> str:
    flat = " ".join(command.split())
    return flat if len(flat) <= MAX_SHOWN_CHARACTERS else flat[: MAX_SHOWN_CHARACTERS - 1] + "…"


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


@dataclass(frozen=True)
class Failure:
    """Behaviour monitoring.

    Attributes:
        min_repeats: a command is reported once it had no effect in this state at least so often (Table 10).
        wordings: paraphrases; field failures.
    """

    min_repeats: int
    wordings: Sequence[str] = WORDINGS

    def __post_init__(self) -> None:
        if self.min_repeats < 1:
            raise ValueError(f"failure.min_repeats: expected >= 1, got {self.min_repeats}")
        object.__setattr__(self, "wordings", check_wordings("failure.wordings", self.wordings, {"failures"}))

    def _reported(self, facts: HarnessFacts) -> list[tuple[str, int]]:
        return [(command, count) for command, count in facts.failures if count >= self.min_repeats]

    def sentences(self, facts: HarnessFacts, draw: Draw) -> list[tuple[str, str]]:
        reported = self._reported(facts)
        if not reported:
            return []
        shown = "; ".join(f"{_shown(command)} ({_times(count)})" for command, count in reported)
        return [(BEHAVIOR_MONITORING, draw.choose("failure", self.wordings).format(failures=shown))]

    def warn(self, facts: HarnessFacts, report: HarnessReport) -> HarnessReport:
        return replace(report, failures=tuple(command for command, _ in self._reported(facts)))
