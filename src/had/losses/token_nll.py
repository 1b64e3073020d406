"""Cross-entropy on given tokens, averaged over tokens (the teacher's turns of Guided-OPD)."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

from had.batch import SpanSet
from had.losses.reduce import Reduction, connected_zero, default_count_name, token_logprobs, weighted_sum
from had.losses.term import Term


class TokenNLL(Term):
    """NLL_t = −log π_θ(y_t | x̃, y_<t), reduced over tokens or over records as in `ReverseKL`."""

    def __init__(
        self,
        reduction: Reduction = "token",
        count_name: str | None = None,
        name: str = "token_nll",
        role: str = "acted",
    ) -> None:
        super().__init__(name, count_name or default_count_name(reduction, role), (role,))
        self.role = role
        self.reduction = reduction

    def __call__(self, spans: Mapping[str, SpanSet], logits: Mapping[str, Tensor]) -> Tensor:
        if not self.has_units(spans):
            return connected_zero(logits)
        nll_N = -token_logprobs(spans[self.role], logits[self.role])
        return weighted_sum(nll_N, spans[self.role], self.reduction)
