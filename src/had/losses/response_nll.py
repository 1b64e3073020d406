"""Response distillation: imitate the teacher's whole with-harness response (paper Eq. 3)."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

from had.batch import SpanSet
from had.losses.reduce import connected_zero, span_means, token_logprobs
from had.losses.term import Term


class ResponseNLL(Term):
    """D = (1/n) Σ_records ℓ_dist with ℓ_dist = −(1/|y⁺|) Σ_j log π_θ(y⁺_j | x̃, y⁺_<j).

    The span of role `response` holds the reasoning, the action and the end-of-turn token as the teacher
    sampled them.
    """

    def __init__(self, name: str = "response", role: str = "response", count_name: str = "records") -> None:
        super().__init__(name, count_name, (role,))
        self.role = role

    def __call__(self, spans: Mapping[str, SpanSet], logits: Mapping[str, Tensor]) -> Tensor:
        if not self.has_units(spans):
            return connected_zero(logits)
        span_set = spans[self.role]
        loss_S = -span_means(token_logprobs(span_set, logits[self.role]), span_set)
        return (span_set.weights_S * loss_S).sum()
