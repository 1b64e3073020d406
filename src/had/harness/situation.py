"""Part *situation*: where the agent is, what it holds, what it has and has not visited. Every turn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from had.harness.part import Draw, Silent, check_wordings, join
from had.records import HarnessFacts

WORDINGS = (
    "You are at {location} and hold {held}. Visited: {visited}. Not yet visited: {unvisited}.",
    "Location: {location}. Held: {held}. Places visited: {visited}. Not yet visited: {unvisited}.",
    "At {location}, holding {held}. Already visited: {visited}. Not yet visited: {unvisited}.",
)


@dataclass(frozen=True)
class Situation(Silent):
    """State tracking, shown every turn.

    Attributes:
        wordings: paraphrases; fields location, held, visited, unvisited.
        nowhere: what stands for the location when the agent is at no place.
    """

    wordings: Sequence[str] = WORDINGS
    nowhere: str = "the middle of the room"

    def __post_init__(self) -> None:
        fields = {"location", "held", "visited", "unvisited"}
        object.__setattr__(self, "wordings", check_wordings("situation.wordings", self.wordings, fields))

    def sentences(self, facts: HarnessFacts, draw: Draw) -> list[tuple[str, str]]:
        unvisited = [place for place in facts.places if place not in facts.visited]
        text = draw.choose("situation", self.wordings).format(
            location=facts.location or self.nowhere,
            held=join(facts.held),
            visited=join(facts.visited, "none"),
            unvisited=join(unvisited, "none"),
        )
        return [(self.category, text)]
