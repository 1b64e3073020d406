"""The imitated player: what makes the small models learn, whatever the environment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from had.records import EnvStep


@dataclass(frozen=True)
class Decision:
    """A thought and a command."""

    thought: str
    command: str

    @property
    def reply(self) -> str:
        """The two-line reply."""
        return f"Thought: {self.thought}\nAction: {self.command}"


@dataclass(frozen=True)
class Habits:
    """How well a player plays; the defaults play well. Each player says what the two mean for it.

    Attributes:
        forgetfulness: probability of acting as if nothing that was seen before were remembered.
        carelessness: probability of leaving out a step that the task needs (decided anew at every turn).
    """

    forgetfulness: float = 0.0
    carelessness: float = 0.0


class ImitatedPlayer(Protocol):
    """One episode's player: `start`, then alternately `decide` and `observe`; it may also watch others play.

    It sees what an agent sees, the task text and the environment's answers, and nothing else.
    """

    def start(self, goal: str, step: EnvStep) -> None:
        """Begin an episode with the answer to reset."""

    def observe(self, command: str | None, step: EnvStep) -> None:
        """Take in what a command (anybody's; None: a reply without one) did."""

    def decide(self) -> Decision:
        """The next thought and command."""
