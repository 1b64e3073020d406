"""From logits to token, span and micro-batch sums: what the loss terms share.

Dimension legend: N scored tokens, V vocabulary, K top-k entries, S spans.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import torch
from torch import Tensor

from had.batch import SpanSet

Reduction = Literal["token", "record"]


def connected_zero(logits: Mapping[str, Tensor]) -> Tensor:
    """A scalar 0 with a gradient path into every logit: the value of a term without units."""
    if not logits:
        raise ValueError(
            "a term got no logits at all, so its zero has no gradient path; score at least one token"
        )
    return torch.stack([logits_NV[..., :1].sum() * 0.0 for logits_NV in logits.values()]).sum()


def token_logprobs(spans: SpanSet, logits_NV: Tensor) -> Tensor:
    """[N] log π_θ of each scored token."""
    return -torch.nn.functional.cross_entropy(logits_NV, spans.targets_N, reduction="none")


def span_sums(values_N: Tensor, spans: SpanSet) -> Tensor:
    """[S] sum of a token value over each span."""
    zeros_S = values_N.new_zeros(spans.num_spans)
    return zeros_S.index_add(0, spans.spans_N, values_N)


def span_means(values_N: Tensor, spans: SpanSet) -> Tensor:
    """[S] mean of a token value over each span."""
    return span_sums(values_N, spans) / spans.lengths_S


def default_count_name(reduction: Reduction, role: str) -> str:
    """The count that divides `weighted_sum` under a reduction.

    `token`: Σ_s w_s |s|, so that the term is a mean over all tokens of the step; `record`: Σ_s w_s, a mean
    over spans of the mean inside each.
    """
    if reduction not in ("token", "record"):
        raise ValueError(f"reduction: expected 'token' or 'record', got {reduction!r}")
    return f"weighted_{'tokens' if reduction == 'token' else 'spans'}_{role}"


def weighted_sum(values_N: Tensor, spans: SpanSet, reduction: Reduction) -> Tensor:
    """Σ_s w_s Σ_{t∈s} v_t under `token`, Σ_s w_s (1/|s|) Σ_{t∈s} v_t under `record`."""
    values_S = span_sums(values_N, spans) if reduction == "token" else span_means(values_N, spans)
    return (spans.weights_S * values_S).sum()


def renormalized_topk(spans: SpanSet, logits_NV: Tensor) -> tuple[Tensor, Tensor]:
    """Log-probabilities of student and teacher, both renormalised over the teacher's top-k tokens.

    Returns:
        (log q̂ [N, K], log p̂ [N, K]); the student's side carries the gradient. The full-vocabulary normaliser
        cancels, so logits serve as well as log-probabilities.
    """
    missing = {"topk_ids", "topk_logprobs"} - set(spans.extra)
    if missing:
        raise ValueError(
            f"the spans have no {sorted(missing)} (they have {sorted(spans.extra)}); use OwnResponseLayout"
        )
    log_q_NK = logits_NV.gather(-1, spans.extra["topk_ids"]).log_softmax(-1)
    log_p_NK = spans.extra["topk_logprobs"].to(logits_NV.dtype).log_softmax(-1)
    return log_q_NK, log_p_NK
