"""Generalised Jensen-Shannon divergence to the teacher on the student's own tokens."""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import Tensor

from had.batch import SpanSet
from had.losses.reduce import Reduction, connected_zero, default_count_name, renormalized_topk, weighted_sum
from had.losses.term import Term


class JSD(Term):
    """JSD_t = β KL(p̂ ‖ m) + (1 − β) KL(q̂ ‖ m) with m = β p̂ + (1 − β) q̂, 0 < β < 1.

    q̂ student and p̂ teacher, both renormalised over the teacher's top-k tokens. JSD/β tends to the forward KL
    for β → 0, JSD/(1 − β) to the reverse KL for β → 1. Further arguments and reduction as in `ReverseKL`.
    """

    def __init__(
        self,
        beta: float = 0.5,
        reduction: Reduction = "token",
        count_name: str | None = None,
        name: str = "jsd",
        role: str = "own",
    ) -> None:
        if not 0 < beta < 1:
            raise ValueError(
                f"beta: expected a value between 0 and 1, got {beta}; use ForwardKL or ReverseKL at the ends"
            )
        super().__init__(name, count_name or default_count_name(reduction, role), (role,))
        self.beta = beta
        self.role = role
        self.reduction = reduction

    def __call__(self, spans: Mapping[str, SpanSet], logits: Mapping[str, Tensor]) -> Tensor:
        if not self.has_units(spans):
            return connected_zero(logits)
        log_q_NK, log_p_NK = renormalized_topk(spans[self.role], logits[self.role])
        log_m_NK = torch.logaddexp(log_p_NK + math.log(self.beta), log_q_NK + math.log1p(-self.beta))
        kl_p_N = (log_p_NK.exp() * (log_p_NK - log_m_NK)).sum(-1)
        kl_q_N = (log_q_NK.exp() * (log_q_NK - log_m_NK)).sum(-1)
        return weighted_sum(self.beta * kl_p_N + (1 - self.beta) * kl_q_N, spans[self.role], self.reduction)
