"""The weight of a turn in SAGE-OPD: how much it needs correction, times how sure the teacher is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from had.records import CompactScores, TeacherLabels
from had.teachers.judges import Judge, Need
from had.teachers.questions import TEACHER
from had.teachers.state import VisitedState
from had.teachers.teacher import Teacher


def confidence(scores: CompactScores) -> float:
    """c: the mean over the turn's tokens of max_v p_T(v), from the teacher's top-k scores."""
    rows = scores.unpack().logprobs
    return sum(math.exp(row[0]) for row in rows) / len(rows)


@dataclass(frozen=True)
class TurnWeight:
    """s = i·c: i from a judge (skip 0, weak α, strong 1, unreadable 1), c the teacher's confidence.

    Stands behind `OwnResponseScores`, whose scores give c; a turn without scores is not judged. Dividing by
    Σ s over the tokens of the step (the loss term's denominator) makes it the weight w = s·N_tok / Σ s.

    Attributes:
        judge: says how much a turn needs correction.
        alpha: α, the weight of a turn that needs it weakly.
    """

    judge: Judge
    alpha: float = 0.5
    asks: str = TEACHER
    needs_negative_view: bool = False
    needs_shared_tokenizer: bool = False  # judges read text; the scores are another question's
    num_answers: ClassVar[int] = 1
    num_scored: ClassVar[int] = 0

    def __post_init__(self) -> None:
        if not 0 <= self.alpha <= 1:
            raise ValueError(f"alpha: expected a number from 0 to 1, got {self.alpha}")

    def is_answered(self, state: VisitedState, label: TeacherLabels) -> bool:
        return label.judgement is not None or not state.is_students

    def ask(
        self, teacher: Teacher, states: Sequence[VisitedState], labels: Sequence[TeacherLabels]
    ) -> list[TeacherLabels]:
        scored = [index for index, label in enumerate(labels) if label.scores is not None]
        needs = self.judge(teacher, [states[index] for index in scored])
        weighted = list(labels)
        for index, need in zip(scored, needs, strict=True):
            weighted[index] = self._weighted(labels[index], need)
        return weighted

    def _weighted(self, label: TeacherLabels, need: Need | None) -> TeacherLabels:
        assert label.scores is not None
        factor = {Need.SKIP: 0.0, Need.WEAK: self.alpha, Need.STRONG: 1.0, None: 1.0}[need]
        sureness = confidence(label.scores)
        extra = {**label.extra, "correction": factor, "confidence": sureness}
        return replace(label, judgement=factor * sureness, extra=extra)
