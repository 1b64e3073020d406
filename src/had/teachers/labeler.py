"""Turns visited states into records: asks a method's questions, leaves out what stayed unanswered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from had.prompts.render import Renderer
from had.prompts.views import View
from had.records import Episode, Record, TeacherLabels
from had.teachers.questions import TEACHER, Question
from had.teachers.state import VisitedState, visited_states
from had.teachers.teacher import Teacher


@dataclass
class Labeler:
    """The labelling half of a method.

    Attributes:
        teacher: who is asked.
        questions: what is asked, in order.
        renderer: the student's chat format, for the prompts that the records keep.
        others: further models that questions ask, by name; their work does not count as the teacher's.
    """

    teacher: Teacher
    questions: Sequence[Question]
    renderer: Renderer
    others: Mapping[str, Teacher] = field(default_factory=dict)

    def __post_init__(self) -> None:
        known = [TEACHER, *self.others]
        if unknown := [question.asks for question in self.questions if question.asks not in known]:
            raise ValueError(f"questions: expected to ask one of {known}, got {unknown}")

    def label(self, episodes: Sequence[Episode], round: int, seed: int) -> tuple[list[Record], int]:
        """Records of all visited states.

        Args:
            episodes: what was played.
            round: recorded in the records.
            seed: decides the teacher's samples.

        Returns:
            The records, and how many states got none because the teacher could not answer or the student's
            reply was empty.
        """
        states = [state for state in visited_states(episodes, seed) if state.turn.response.ids]
        num_unlabelled = sum(len(episode.turns) for episode in episodes) - len(states)
        self.teacher.note_played(episodes)
        labels = [TeacherLabels() for _ in states]
        for question in self.questions:
            labels = question.ask(self.others.get(question.asks, self.teacher), states, labels)
        keeps_negative = any(question.needs_negative_view for question in self.questions)
        records = []
        for state, label in zip(states, labels, strict=True):
            if all(question.is_answered(state, label) for question in self.questions):
                records.append(self._record(state, label, round, keeps_negative))
            else:
                num_unlabelled += 1
        return records, num_unlabelled

    def _record(self, state: VisitedState, label: TeacherLabels, round: int, keeps_negative: bool) -> Record:
        without = state.prompt(self.renderer, View.WITHOUT_HARNESS) if keeps_negative else ()
        return Record(
            id=state.id,
            episode_id=state.episode.id,
            turn_index=state.turn.index,
            relative_position=state.relative_position,
            round=round,
            policy_version=state.episode.policy_version,
            prompt_ids=state.turn.prompt_ids,
            prompt_ids_without=without or (),
            student=state.turn.response,
            labels=label,
            actor=state.turn.actor,
        )
