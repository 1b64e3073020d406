"""Part *visit*: when the current visit began, its commands so far, and the earlier visits of this place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from had.harness.part import Draw, Silent, check_wordings
from had.records import HarnessFacts, VisitSummary

WORDINGS = (
    "This visit began at turn {turn}, {commands} so far.",
    "Here since turn {turn}, {commands} so far.",
    "The current visit started at turn {turn}, {commands} so far.",
)
REVISIT_WORDINGS = (
    "You were here before: {visits}.",
    "Earlier visits here: {visits}.",
    "This place was already visited: {visits}.",
)
MAX_EARLIER_VISITS = 3  # the latest ones; a longer list would grow with every loop of a stuck agent


def _count(number: int) -> str:
    return f"{number} command" if number == 1 else f"{number} commands"


def _summarise(visit: VisitSummary) -> str:
    if visit.first_turn == visit.last_turn:
        return f"turn {visit.first_turn}, {_count(visit.num_commands)}"
    return f"turns {visit.first_turn} to {visit.last_turn}, {_count(visit.num_commands)}"


@dataclass(frozen=True)
class Visit(Silent):
    """State tracking, shown every turn at a place; the second sentence only on a revisit.

    Attributes:
        wordings: paraphrases; fields turn, commands.
        revisit_wordings: paraphrases; field visits.
    """

    wordings: Sequence[str] = WORDINGS
    revisit_wordings: Sequence[str] = REVISIT_WORDINGS

    def __post_init__(self) -> None:
        current = check_wordings("visit.wordings", self.wordings, {"turn", "commands"})
        object.__setattr__(self, "wordings", current)
        revisit = check_wordings("visit.revisit_wordings", self.revisit_wordings, {"visits"})
        object.__setattr__(self, "revisit_wordings", revisit)

    def sentences(self, facts: HarnessFacts, draw: Draw) -> list[tuple[str, str]]:
        if facts.visit_first_turn is None:
            return []
        current = draw.choose("visit", self.wordings).format(
            turn=facts.visit_first_turn, commands=_count(facts.visit_num_commands)
        )
        said = [(self.category, current)]
        if facts.earlier_visits:
            visits = "; ".join(_summarise(visit) for visit in facts.earlier_visits[-MAX_EARLIER_VISITS:])
            said.append((self.category, draw.choose("revisit", self.revisit_wordings).format(visits=visits)))
        return said
