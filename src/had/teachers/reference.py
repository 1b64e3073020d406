"""Reference scores: the log-probabilities that a fixed policy gives to the two actions of a pair."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from had.prompts.views import View
from had.records import TeacherLabels, Verdict
from had.teachers.questions import TEACHER
from had.teachers.state import VisitedState
from had.teachers.teacher import Teacher

PREFERRED, DISPREFERRED = "reference_preferred", "reference_dispreferred"


@dataclass(frozen=True)
class ActionReference:
    """log π_ref(a⁺|x̃,z_s) and log π_ref(a⁻|x̃,z_s), as `extra["reference_<role>"]`.

    Stands behind the questions for both answers. Only pairs that the preference term will see are scored:
    both actions and the student's could be parsed, the actions differ and, with `check_validity`, the
    positive one is valid.

    Attributes:
        asks: whose probabilities: `teacher` or `initial_student`.
        check_validity: as in the layout of the pairs.
    """

    asks: str = TEACHER
    check_validity: bool = True
    needs_negative_view: bool = False
    num_answers: ClassVar[int] = 0
    num_scored: ClassVar[int] = 2

    @property
    def needs_shared_tokenizer(self) -> bool:
        """The teacher scores ids of the student; the untrained student scores its own."""
        return self.asks == TEACHER

    def is_answered(self, state: VisitedState, label: TeacherLabels) -> bool:
        return PREFERRED in label.extra or not self._is_needed(state, label)

    def ask(
        self, teacher: Teacher, states: Sequence[VisitedState], labels: Sequence[TeacherLabels]
    ) -> list[TeacherLabels]:
        needed = [i for i, state in enumerate(states) if self._is_needed(state, labels[i])]
        runs = []
        for index in needed:
            positive, negative = labels[index].positive, labels[index].negative
            assert positive is not None and negative is not None
            context = states[index].turn.response.reasoning_ids
            runs += [(context, positive.action_ids), (context, negative.action_ids)]
        twice = [states[index] for index in needed for _ in range(2)]
        sums = teacher.logprobs(twice, View.WITH_HARNESS, runs)
        scored = list(labels)
        for index, preferred, dispreferred in zip(needed, sums[::2], sums[1::2], strict=True):
            if preferred is not None and dispreferred is not None:
                extra = {**labels[index].extra, PREFERRED: preferred, DISPREFERRED: dispreferred}
                scored[index] = replace(labels[index], extra=extra)
        return scored

    def _is_needed(self, state: VisitedState, label: TeacherLabels) -> bool:
        positive, negative = label.positive, label.negative
        if positive is None or negative is None:
            return False
        is_pair = None not in (positive.action, negative.action, state.turn.response.action)
        is_accepted = label.verdict is Verdict.VALID or not self.check_validity
        return is_pair and is_accepted and positive.action_ids != negative.action_ids
