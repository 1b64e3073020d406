"""Part *stall*: no new state was reached for a number of turns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from had.harness.part import BEHAVIOR_MONITORING, Draw, check_wordings
from had.records import HarnessFacts, HarnessReport

WORDINGS = (
    "Nothing new for {turns} turns.",
    "No new state was reached for {turns} turns.",
    "The last {turns} turns brought nothing new.",
)


@dataclass(frozen=True)
class Stall:
    """Behaviour monitoring.

    Attributes:
        window: shown when no new state was reached for at least so many turns (Table 10).
        wordings: paraphrases; field turns.
    """

    window: int
    wordings: Sequence[str] = WORDINGS

    def __post_init__(self) -> None:
        if self.window < 1:
            raise ValueError(f"stall.window: expected >= 1 turn, got {self.window}")
        object.__setattr__(self, "wordings", check_wordings("stall.wordings", self.wordings, {"turns"}))

    def _is_stalled(self, facts: HarnessFacts) -> bool:
        return facts.turns_without_new_state >= self.window

    def sentences(self, facts: HarnessFacts, draw: Draw) -> list[tuple[str, str]]:
        if not self._is_stalled(facts):
            return []
        text = draw.choose("stall", self.wordings).format(turns=facts.turns_without_new_state)
        return [(BEHAVIOR_MONITORING, text)]

    def warn(self, facts: HarnessFacts, report: HarnessReport) -> HarnessReport:
        return replace(report, is_stalled=self._is_stalled(facts))
