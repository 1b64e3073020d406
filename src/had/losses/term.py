"""`Term`: the interface of a loss term.

Dimension legend: N scored tokens of a role, V vocabulary.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping

from torch import Tensor

from had.batch import SpanSet


class Term(ABC):
    """One loss term of a step: a sum over units (records, pairs, tokens) divided by their number in the step.

    A term sees one micro-batch at a time and returns the *sum*; the caller divides by the step's count, so
    that the result does not depend on micro-batches, accumulation or ranks.

    Attributes:
        name: short name, used in the log keys `loss_<name>` and `grad_norm_<name>`.
        count_name: the entry of `TokenBatch.counts` that divides the sum.
        roles: the span roles that the term reads. A micro-batch without any of them adds nothing to the term.
    """

    def __init__(self, name: str, count_name: str, roles: tuple[str, ...]) -> None:
        self.name = name
        self.count_name = count_name
        self.roles = roles

    @abstractmethod
    def __call__(self, spans: Mapping[str, SpanSet], logits: Mapping[str, Tensor]) -> Tensor:
        """Sum of the term over the units of one micro-batch.

        Args:
            spans: the spans by role.
            logits: by role, [N, V] float32 logits at the scored tokens of `spans[role]`.

        Returns:
            A scalar with a gradient path into `logits`, also when there is no unit.
        """

    def skipped_sum(self, counts: Mapping[str, float]) -> float:
        """Sum over the units that were counted but not forwarded because their gradient is exactly zero.

        Args:
            counts: the counts of the whole step.
        """
        return 0.0

    def has_units(self, spans: Mapping[str, SpanSet]) -> bool:
        """True when the micro-batch holds a span that the term reads."""
        return any(role in spans and spans[role].num_spans > 0 for role in self.roles)
