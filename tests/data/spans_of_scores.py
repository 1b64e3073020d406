"""The span set of one response with top-k scores, without packing."""

from __future__ import annotations

import torch

from had.batch import SpanSet
from had.records import TopKScores


def spans_of(scores: TopKScores) -> SpanSet:
    """One span over all tokens; rows, sources and targets are not looked at by the divergences."""
    num_tokens = len(scores.ids)
    zeros = torch.zeros(num_tokens, dtype=torch.long)
    return SpanSet(
        rows_N=zeros,
        sources_N=zeros,
        targets_N=zeros,
        spans_N=zeros,
        lengths_S=torch.tensor([num_tokens]),
        weights_S=torch.ones(1, dtype=torch.float64),
        records_S=zeros[:1],
        extra={
            "topk_ids": torch.tensor(scores.ids),
            "topk_logprobs": torch.tensor(scores.logprobs, dtype=torch.float64),
        },
    )
