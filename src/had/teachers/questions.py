"""What a method asks the teacher at every visited state: questions, each of which fills in labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Protocol

from had.envs.base import CommandGrammar
from had.harness.validity import check_command
from had.prompts.views import View
from had.records import TeacherLabels
from had.teachers.state import VisitedState
from had.teachers.teacher import Teacher

TEACHER = "teacher"


class Question(Protocol):
    """One thing to ask; a method is a list of them, and later ones may read the answers to earlier ones."""

    @property
    def asks(self) -> str:
        """Who is asked: `teacher`, or another model that the labeler knows by name."""

    def ask(
        self, teacher: Teacher, states: Sequence[VisitedState], labels: Sequence[TeacherLabels]
    ) -> list[TeacherLabels]:
        """The labels with this question's answers added, in the order of the states."""

    def is_answered(self, state: VisitedState, label: TeacherLabels) -> bool:
        """True when the label holds this question's answer, or the state does not need one.

        A state with an unanswered question gives no record.
        """

    @property
    def needs_negative_view(self) -> bool:
        """True when records must keep the without-harness prompt."""

    @property
    def needs_shared_tokenizer(self) -> bool:
        """True when token ids of the student are put to the teacher, not only text; see `reencoding`."""

    num_answers: ClassVar[int]
    """Sampled answers per state, for plans."""
    num_scored: ClassVar[int]
    """Replies or actions per state whose probabilities are asked for, for plans."""


@dataclass(frozen=True)
class PositiveAnswer:
    """y⁺: the teacher's answer from the with-harness view, and the verdict on its action (spec section 5).

    Attributes:
        grammar: of the environment's commands, for the validity check.
    """

    grammar: CommandGrammar
    asks: str = TEACHER
    needs_negative_view: bool = False
    needs_shared_tokenizer: bool = False  # labels are re-encoded
    num_answers: ClassVar[int] = 1
    num_scored: ClassVar[int] = 0

    def is_answered(self, state: VisitedState, label: TeacherLabels) -> bool:
        return label.positive is not None

    def ask(
        self, teacher: Teacher, states: Sequence[VisitedState], labels: Sequence[TeacherLabels]
    ) -> list[TeacherLabels]:
        answers = teacher.answer(states, View.WITH_HARNESS, salt=0)
        return [
            label
            if answer is None
            else replace(
                label,
                positive=answer,
                verdict=check_command(answer.action, state.turn.commands, state.turn.facts, self.grammar),
            )
            for state, label, answer in zip(states, labels, answers, strict=True)
        ]


@dataclass(frozen=True)
class NegativeAnswer:
    """y⁻: an independent answer of the same teacher; never checked.

    Attributes:
        view: `without_harness`, or `with_harness` for the control of sampling noise.
    """

    view: str = View.WITHOUT_HARNESS.value
    asks: str = TEACHER
    needs_shared_tokenizer: bool = False  # labels are re-encoded
    num_answers: ClassVar[int] = 1
    num_scored: ClassVar[int] = 0

    def __post_init__(self) -> None:
        View(self.view)  # an unknown view is an error here, not in the first round

    @property
    def needs_negative_view(self) -> bool:
        """The record keeps x where the teacher read it."""
        return View(self.view) is View.WITHOUT_HARNESS

    def is_answered(self, state: VisitedState, label: TeacherLabels) -> bool:
        return label.negative is not None

    def ask(
        self, teacher: Teacher, states: Sequence[VisitedState], labels: Sequence[TeacherLabels]
    ) -> list[TeacherLabels]:
        answers = teacher.answer(states, View(self.view), salt=1)
        return [replace(label, negative=answer) for label, answer in zip(labels, answers, strict=True)]


@dataclass(frozen=True)
class OwnResponseScores:
    """The teacher's top-k next-token log-probabilities on the student's own response, from x̃.

    Not asked for turns that the teacher played.

    Attributes:
        top_k: 64 in the paper.
    """

    top_k: int = 64
    asks: str = TEACHER
    needs_negative_view: bool = False
    needs_shared_tokenizer: bool = True  # scores stand at the student's tokens and over its vocabulary
    num_answers: ClassVar[int] = 0
    num_scored: ClassVar[int] = 1

    def __post_init__(self) -> None:
        if self.top_k < 1:
            raise ValueError(f"top_k: expected >= 1, got {self.top_k}")

    def is_answered(self, state: VisitedState, label: TeacherLabels) -> bool:
        return label.scores is not None or not state.is_students

    def ask(
        self, teacher: Teacher, states: Sequence[VisitedState], labels: Sequence[TeacherLabels]
    ) -> list[TeacherLabels]:
        own = [index for index, state in enumerate(states) if state.is_students]
        scores = teacher.scores([states[index] for index in own], View.WITH_HARNESS, self.top_k)
        answered = list(labels)
        for index, score in zip(own, scores, strict=True):
            answered[index] = replace(labels[index], scores=score)
        return answered
