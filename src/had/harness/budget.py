"""Part *budget*: the current turn and the maximum; an urge to finish when few turns are left."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from had.harness.part import BEHAVIOR_MONITORING, STATE_TRACKING, Draw, check_wordings
from had.records import HarnessFacts, HarnessReport

WORDINGS = (
    "Turn {turn} of {max_turns}.",
    "This is turn {turn} of at most {max_turns}.",
    "Current turn: {turn} of {max_turns}.",
)
URGE_WORDINGS = (
    "Only {left} turns are left: finish the task.",
    "{left} turns remain; complete the task now.",
    "Time is short, {left} turns to go: finish the task.",
)


@dataclass(frozen=True)
class Budget:
    """The counter is state tracking and shown every turn; the urge is behaviour monitoring.

    Attributes:
        threshold: the urge is shown when fewer turns than this are left, the current one included (Table 10).
        wordings: paraphrases; fields turn, max_turns.
        urge_wordings: paraphrases; field left.
    """

    threshold: int
    wordings: Sequence[str] = WORDINGS
    urge_wordings: Sequence[str] = URGE_WORDINGS

    def __post_init__(self) -> None:
        if self.threshold < 0:
            raise ValueError(f"budget.threshold: expected >= 0 turns (0 never urges), got {self.threshold}")
        fields = {"turn", "max_turns"}
        object.__setattr__(self, "wordings", check_wordings("budget.wordings", self.wordings, fields))
        urge = check_wordings("budget.urge_wordings", self.urge_wordings, {"left"})
        object.__setattr__(self, "urge_wordings", urge)

    def _is_urgent(self, facts: HarnessFacts) -> bool:
        return facts.turns_left < self.threshold

    def sentences(self, facts: HarnessFacts, draw: Draw) -> list[tuple[str, str]]:
        counter = draw.choose("budget", self.wordings).format(turn=facts.turn, max_turns=facts.max_turns)
        said = [(STATE_TRACKING, counter)]
        if self._is_urgent(facts):
            urge = draw.choose("urge", self.urge_wordings).format(left=facts.turns_left)
            said.append((BEHAVIOR_MONITORING, urge))
        return said

    def warn(self, facts: HarnessFacts, report: HarnessReport) -> HarnessReport:
        return replace(report, is_urged=self._is_urgent(facts))
