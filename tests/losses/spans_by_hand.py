"""Span sets written by hand, for tests that feed logits straight into the terms."""

from __future__ import annotations

import torch

from had.batch import SpanSet


def span_set(
    targets: list[list[int]],
    weights: list[float] | None = None,
    records: list[int] | None = None,
    **extra: torch.Tensor,
) -> SpanSet:
    """Spans with the given target ids; rows and sources are not looked at by the terms."""
    flat = torch.tensor([token for run in targets for token in run])
    return SpanSet(
        rows_N=torch.zeros_like(flat),
        sources_N=torch.zeros_like(flat),
        targets_N=flat,
        spans_N=torch.tensor([index for index, run in enumerate(targets) for _ in run]),
        lengths_S=torch.tensor([len(run) for run in targets]),
        weights_S=torch.tensor(weights or [1.0] * len(targets), dtype=torch.float64),
        records_S=torch.tensor(records or list(range(len(targets)))),
        extra=extra,
    )
