"""Action preference: after the student's own reasoning, prefer a⁺ over a⁻ (paper Eq. 5-6)."""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import Tensor

from had.batch import SpanSet
from had.losses.reduce import connected_zero, span_means, token_logprobs
from had.losses.term import Term


class ActionPreference(Term):
    """P = (1/n_V) Σ_accepted ℓ_pref with ℓ_pref = −log σ(βΔ).

    Δ = log π_θ(a⁺|x̃,z_s)/|a⁺| − log π_θ(a⁻|x̃,z_s)/|a⁻|, over the action tokens only. With a reference policy
    the same difference under the reference is subtracted: Δ − [log π_ref(a⁺|x̃,z_s)/|a⁺| − log
    π_ref(a⁻|x̃,z_s)/|a⁻|].

    A pair of equal actions has Δ = 0: it is worth log 2, has no gradient and is never forwarded
    (`skipped_sum`).

    Args:
        beta: β.
        reference: name of the span extra that holds log π_ref of the whole run, or None for no reference.
        name: short name in the logs.
    """

    def __init__(self, beta: float = 0.5, reference: str | None = None, name: str = "preference") -> None:
        if beta <= 0:
            raise ValueError(f"beta: expected > 0, got {beta}")
        super().__init__(name, "accepted", ("preferred", "dispreferred"))
        self.beta = beta
        self.reference = reference

    def __call__(self, spans: Mapping[str, SpanSet], logits: Mapping[str, Tensor]) -> Tensor:
        if not self.has_units(spans):
            return connected_zero(logits)
        preferred, dispreferred = spans["preferred"], spans["dispreferred"]
        assert torch.equal(preferred.records_S, dispreferred.records_S), (
            "the two sides of the pairs do not match"
        )
        delta_S = self._score(preferred, logits["preferred"]) - self._score(
            dispreferred, logits["dispreferred"]
        )
        loss_S = -torch.nn.functional.logsigmoid(self.beta * delta_S)
        return (preferred.weights_S * loss_S).sum()

    def skipped_sum(self, counts: Mapping[str, float]) -> float:
        return math.log(2.0) * (counts.get("accepted", 0.0) - counts.get("differing", 0.0))

    def _score(self, spans: SpanSet, logits_NV: Tensor) -> Tensor:
        """[S] length-normalised log-probability, minus the reference's when there is one."""
        score_S = span_means(token_logprobs(spans, logits_NV), spans)
        if self.reference is None:
            return score_S
        if self.reference not in spans.extra:
            raise ValueError(
                f"the spans have no extra {self.reference!r} (they have {sorted(spans.extra)}); wrap the "
                "layout in ReferenceLayout"
            )
        return score_S - spans.extra[self.reference] / spans.lengths_S
