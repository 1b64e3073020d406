"""`TokenBatch`: what the learning half sees. Packed token trees, and the spans in them that are scored.

Dimension legend: B rows, T tokens of a row, N scored tokens, S spans, K top-k entries.

A row is a tree: a node is a run of tokens; a token attends to the tokens of its node's ancestors and,
causally, to its own node. Independent rows are trees of a single node. A *span* is a run of consecutive
scored tokens inside one node; the first token of a node is predicted by the last token of its parent.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor


@dataclass(frozen=True)
class SpanSet:
    """All spans of one role (`response`, `preferred`, `dispreferred`, …) in one micro-batch.

    Attributes:
        rows_N: [N] row of each scored token.
        sources_N: [N] position in that row whose hidden state predicts the token.
        targets_N: [N] id of the token.
        spans_N: [N] index of the span that the token belongs to, in 0..S-1, non-decreasing.
        lengths_S: [S] tokens per span, each >= 1.
        weights_S: [S] weight of each span (1 unless a labeler gave another).
        records_S: [S] index of the record in the whole step's list of records; pairs are matched by it.
        extra: further tensors by name, [N, …] or [S, …] (top-k ids and log-probs, reference scores).
    """

    rows_N: Tensor
    sources_N: Tensor
    targets_N: Tensor
    spans_N: Tensor
    lengths_S: Tensor
    weights_S: Tensor
    records_S: Tensor
    extra: dict[str, Tensor] = field(default_factory=dict)

    @property
    def num_tokens(self) -> int:
        return self.targets_N.numel()

    @property
    def num_spans(self) -> int:
        return self.lengths_S.numel()

    def to(self, device: torch.device | str) -> SpanSet:
        """The same spans on another device."""
        moved = {k: v.to(device) for k, v in vars(self).items() if isinstance(v, Tensor)}
        return SpanSet(**moved, extra={k: v.to(device) for k, v in self.extra.items()})

    def of_rows(self, first: int, end: int) -> SpanSet:
        """The spans of the rows first..end-1, whose numbers start at 0."""
        keep_N = (self.rows_N >= first) & (self.rows_N < end)
        keep_S = torch.zeros_like(self.lengths_S, dtype=torch.bool)
        keep_S[self.spans_N[keep_N]] = True
        # where both have one length, every span has one token and the two masks are the same
        masks = {keep_S.numel(): keep_S, keep_N.numel(): keep_N}
        return SpanSet(
            rows_N=self.rows_N[keep_N] - first,
            sources_N=self.sources_N[keep_N],
            targets_N=self.targets_N[keep_N],
            spans_N=(keep_S.cumsum(0) - 1)[self.spans_N[keep_N]],
            lengths_S=self.lengths_S[keep_S],
            weights_S=self.weights_S[keep_S],
            records_S=self.records_S[keep_S],
            extra={name: value[masks[value.shape[0]]] for name, value in self.extra.items()},
        )


@dataclass(frozen=True)
class TokenBatch:
    """One micro-batch.

    Attributes:
        tokens_BT: [B, T] token ids, padded on the right.
        positions_BT: [B, T] position ids: depth in the tree, so that siblings share positions.
        nodes_BT: [B, T] node index of each token within its row; -1 on padding.
        parents_BM: [B, M] parent node of each node, -1 for a root (and for unused entries).
        spans: the scored spans by role; a role without spans in this micro-batch may be absent.
        counts: by name, how many units the *whole optimizer step* has over all micro-batches of this process
            (`records`, `accepted`, `differing`, `tokens_<role>`, …): the denominators of the loss terms.
        record_ids: ids of the step's records of this process, which `SpanSet.records_S` counts.
    """

    tokens_BT: Tensor
    positions_BT: Tensor
    nodes_BT: Tensor
    parents_BM: Tensor
    spans: dict[str, SpanSet]
    counts: dict[str, float]
    record_ids: tuple[str, ...] = ()

    @property
    def num_rows(self) -> int:
        return self.tokens_BT.shape[0]

    @property
    def size(self) -> int:
        """Tokens with padding."""
        return self.tokens_BT.numel()

    def own_record_ids(self) -> list[str]:
        """Ids of the records with a span in this micro-batch."""
        found = {int(index) for spans in self.spans.values() for index in spans.records_S}
        return [self.record_ids[index] for index in sorted(found) if index < len(self.record_ids)]

    def halves(self) -> tuple[TokenBatch, TokenBatch]:
        """The first half of the rows and the rest: together they give what the whole gives.

        Raises:
            ValueError: there is one row.
        """
        if self.num_rows < 2:
            raise ValueError("halves: expected at least two rows, got one, and a row is not split")
        middle = self.num_rows // 2
        return self._of_rows(0, middle), self._of_rows(middle, self.num_rows)

    def _of_rows(self, first: int, end: int) -> TokenBatch:
        """Some rows, without the padding that none of them needs; the counts stay those of the step."""
        nodes_BT = self.nodes_BT[first:end]
        width = int((nodes_BT >= 0).sum(1).max())
        spans = {role: found.of_rows(first, end) for role, found in self.spans.items()}
        return TokenBatch(
            tokens_BT=self.tokens_BT[first:end, :width],
            positions_BT=self.positions_BT[first:end, :width],
            nodes_BT=nodes_BT[:, :width],
            parents_BM=self.parents_BM[first:end],
            spans={role: found for role, found in spans.items() if found.num_spans},
            counts=self.counts,
            record_ids=self.record_ids,
        )

    def attention_mask(self) -> Tensor:
        """[B, 1, T, T] bool, True where the query (dim 2) may see the key (dim 3).

        A padding token sees itself only, so that no softmax row is empty.
        """
        num_rows, num_tokens = self.tokens_BT.shape
        num_nodes = self.parents_BM.shape[1]
        # is_ancestor[b, i, j]: node j is node i or one of its ancestors
        ancestor = torch.arange(num_nodes, device=self.tokens_BT.device).expand(num_rows, num_nodes).clone()
        shape = (num_rows, num_nodes, num_nodes + 1)
        is_ancestor = torch.zeros(shape, dtype=torch.bool, device=self.tokens_BT.device)
        for _ in range(num_nodes):
            is_ancestor.scatter_(2, torch.where(ancestor < 0, num_nodes, ancestor).unsqueeze(-1), True)
            step = self.parents_BM.gather(1, ancestor.clamp(min=0))
            ancestor = torch.where(ancestor < 0, ancestor, step)
        nodes = self.nodes_BT.clamp(min=0)
        rows = torch.arange(num_rows, device=nodes.device)[:, None, None]
        visible = is_ancestor[rows, nodes[:, :, None], nodes[:, None, :]]
        causal = torch.ones(num_tokens, num_tokens, dtype=torch.bool, device=nodes.device).tril()
        real = self.nodes_BT >= 0
        visible &= causal & real[:, None, :] & real[:, :, None]
        visible |= torch.eye(num_tokens, dtype=torch.bool, device=nodes.device)
        return visible.unsqueeze(1)

    def to(self, device: torch.device | str) -> TokenBatch:
        """The same batch on another device."""
        return TokenBatch(
            tokens_BT=self.tokens_BT.to(device),
            positions_BT=self.positions_BT.to(device),
            nodes_BT=self.nodes_BT.to(device),
            parents_BM=self.parents_BM.to(device),
            spans={k: v.to(device) for k, v in self.spans.items()},
            counts=self.counts,
            record_ids=self.record_ids,
        )
