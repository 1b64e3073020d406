"""Visited states: the positions of played episodes that the teacher is asked about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from zlib import crc32

from had.prompts.render import PromptTooLongError, Renderer
from had.prompts.views import View
from had.records import Episode, Turn

STUDENT = "student"


@dataclass(frozen=True)
class VisitedState:
    """One turn of an episode, with everything before it.

    Attributes:
        episode: the episode.
        turn: the turn that is asked about.
        seed: of the teacher's answers at this state.
    """

    episode: Episode
    turn: Turn
    seed: int

    @property
    def id(self) -> str:
        """Unique within a run."""
        return f"{self.episode.id}/t{self.turn.index:02d}"

    @property
    def is_students(self) -> bool:
        """The student acted, not the teacher in its place."""
        return self.turn.actor == STUDENT

    @property
    def relative_position(self) -> float:
        """Position in the episode, in [0, 1)."""
        return self.turn.index / len(self.episode.turns)

    def prompt(self, renderer: Renderer, view: View) -> tuple[int, ...] | None:
        """The state in one view of the same realised history, None when it is too long for the renderer."""
        past = self.episode.turns[: self.turn.index]
        try:
            return renderer.prompt(self.episode.task.goal, past, self.turn, view)
        except PromptTooLongError:
            return None


def visited_states(episodes: Sequence[Episode], seed: int) -> list[VisitedState]:
    """All turns of all episodes, in order; those of failed episodes too, as far as they were played."""
    return [
        VisitedState(episode, turn, crc32(f"{seed}/{episode.id}/{turn.index}".encode()))
        for episode in episodes
        for turn in episode.turns
    ]
