"""Reverse KL to the teacher on the student's own tokens (OPD, SAGE-OPD, Guided-OPD)."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

from had.batch import SpanSet
from had.losses.reduce import Reduction, connected_zero, default_count_name, renormalized_topk, weighted_sum
from had.losses.term import Term


class ReverseKL(Term):
    """KL_t = Σ_k q̂_k (log q̂_k − log p̂_k), q̂ student, p̂ teacher, both renormalised on the teacher's top-k.

    Reduced as Σ w·KL / Σ w over all tokens of the step (`token`), or as a weighted mean over records of the
    mean inside each (`record`); w is the weight of the turn (SAGE-OPD), else 1.

    Args:
        reduction: `token` or `record`.
        count_name: another denominator, for a method that divides several terms by a common count.
    """

    def __init__(
        self,
        reduction: Reduction = "token",
        count_name: str | None = None,
        name: str = "reverse_kl",
        role: str = "own",
    ) -> None:
        super().__init__(name, count_name or default_count_name(reduction, role), (role,))
        self.role = role
        self.reduction = reduction

    def __call__(self, spans: Mapping[str, SpanSet], logits: Mapping[str, Tensor]) -> Tensor:
        if not self.has_units(spans):
            return connected_zero(logits)
        log_q_NK, log_p_NK = renormalized_topk(spans[self.role], logits[self.role])
        kl_N = (log_q_NK.exp() * (log_q_NK - log_p_NK)).sum(-1)
        return weighted_sum(kl_N, spans[self.role], self.reduction)
