"""What a method asks the teacher at every visited state: a list of questions, each of which fills in labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from had.envs.base import CommandGrammar
from had.harness.validity import check_command
from had.prompts.views import View
from had.records import TeacherLabels
from had.teachers.state import VisitedState
from had.teachers.teacher import Teacher


class Question(Protocol):
    """One thing to ask; a method is a list of them."""

    def ask(
        self, teacher: Teacher, states: Sequence[VisitedState], labels: Sequence[TeacherLabels]
    ) -> list[TeacherLabels]:
        """The labels with this question's answers added, in the order of the states."""

    def is_answered(self, label: TeacherLabels) -> bool:
        """True when this question left its answer in the label; a state without it gives no record."""

    @property
    def needs_negative_view(self) -> bool:
        """True when records must keep the without-harness prompt."""


@dataclass(frozen=True)
class PositiveAnswer:
    """y⁺: the teacher's answer from the with-harness view, and the verdict on its action (spec section 5).

    Attributes:
        grammar: of the environment's commands, for the validity check.
    """

    grammar: CommandGrammar
    needs_negative_view: bool = False

    def is_answered(self, label: TeacherLabels) -> bool:
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

    def __post_init__(self) -> None:
        View(self.view)  # an unknown view is an error here, not in the first round

    @property
    def needs_negative_view(self) -> bool:
        """The record keeps x where the teacher read it."""
        return View(self.view) is View.WITHOUT_HARNESS

    def is_answered(self, label: TeacherLabels) -> bool:
        return label.negative is not None

    def ask(
        self, teacher: Teacher, states: Sequence[VisitedState], labels: Sequence[TeacherLabels]
    ) -> list[TeacherLabels]:
        answers = teacher.answer(states, View(self.view), salt=1)
        return [replace(label, negative=answer) for label, answer in zip(labels, answers, strict=True)]


@dataclass(frozen=True)
class OwnResponseScores:
    """The teacher's top-k next-token log-probabilities on the student's own response, from the with-harness view.

    Attributes:
        top_k: 64 in the paper.
    """

    top_k: int = 64
    needs_negative_view: bool = False

    def __post_init__(self) -> None:
        if self.top_k < 1:
            raise ValueError(f"top_k: expected >= 1, got {self.top_k}")

    def is_answered(self, label: TeacherLabels) -> bool:
        return label.scores is not None

    def ask(
        self, teacher: Teacher, states: Sequence[VisitedState], labels: Sequence[TeacherLabels]
    ) -> list[TeacherLabels]:
        scores = teacher.scores(states, View.WITH_HARNESS, self.top_k)
        return [replace(label, scores=score) for label, score in zip(labels, scores, strict=True)]
