"""Packing: the records of one optimizer step become token trees, and the trees become micro-batches.

Dimension legend: B rows, T tokens of a row, M nodes, N scored tokens, S spans, K top-k entries.

A record is one row: its prompt is the root, and runs that several branches have in common (the prompt, the
student's reasoning z_s) exist once. This is exact: a token attends to its ancestors only, and siblings share
position ids.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from had.batch import SpanSet, TokenBatch
from had.data.layouts import Branch, LaidOut, Layout, Run
from had.records import Record

ROOT = 0  # the prompt's node


@dataclass
class _Span:
    """A scored run of a tree: `first` is the position of its first token, `source` of the one before it."""

    branch: Branch
    first: int
    source: int


@dataclass
class _Tree:
    """The row of one record, while it grows."""

    record_index: int
    record_id: str
    tokens: list[int] = field(default_factory=list)
    positions: list[int] = field(default_factory=list)
    nodes: list[int] = field(default_factory=list)
    parents: list[int] = field(default_factory=list)
    spans: list[_Span] = field(default_factory=list)
    _children: dict[tuple[int, Run], tuple[int, int]] = field(default_factory=dict)

    def _descend(self, parent: int, run: Run, source: int) -> tuple[int, int]:
        """The child of `parent` that holds `run` (made when missing), and the position of its first token."""
        if (parent, run) not in self._children:
            first = len(self.tokens)
            depth = self.positions[source] + 1 if self.tokens else 0
            node = len(self.parents)
            self.parents.append(parent)
            self.tokens.extend(run)
            self.positions.extend(range(depth, depth + len(run)))
            self.nodes.extend([node] * len(run))
            self._children[parent, run] = (node, first)
        return self._children[parent, run]

    def add_prompt(self, prompt: Run) -> None:
        if not prompt:
            raise ValueError(
                f"record {self.record_id}: the prompt is empty, so nothing predicts the first scored token"
            )
        self._descend(-1, prompt, source=-1)

    def add(self, branch: Branch) -> None:
        """Add the runs of one branch and remember its scored span."""
        if not branch.path or not branch.path[-1]:
            raise ValueError(
                f"record {self.record_id}: the scored run of role {branch.role!r} is empty; the layout "
                "must not emit it (a response without tokens, or an action whose span is empty?)"
            )
        node, source = ROOT, self.nodes.count(ROOT) - 1
        for run in branch.path[:-1]:
            if run:
                node, first = self._descend(node, run, source)
                source = first + len(run) - 1
        _, first = self._descend(node, branch.path[-1], source)
        self.spans.append(_Span(branch, first, source))

    @property
    def roles(self) -> tuple[str, ...]:
        return tuple(sorted({span.branch.role for span in self.spans}))


def _grow_tree(record_index: int, record: Record, laid_out: Sequence[LaidOut]) -> _Tree:
    """The tree of one record."""
    tree = _Tree(record_index, record.id)
    tree.add_prompt(record.prompt_ids)
    for part in laid_out:
        for branch in part.branches:
            tree.add(branch)
    return tree


def _count(trees: Sequence[_Tree], laid_out: Sequence[LaidOut]) -> dict[str, float]:
    """The counts of the whole step: those of the layouts, and what the trees hold.

    Per role: `tokens_<role>` and `spans_<role>` scored, `weighted_tokens_<role>` and `weighted_spans_<role>`
    the same with each span's weight. `tokens` counts the tokens that go through the model, `tokens_scored`
    all scored ones.
    """
    counts: defaultdict[str, float] = defaultdict(float, records=float(len(trees)), tokens_scored=0.0)
    for part in laid_out:
        for name, value in part.counts.items():
            counts[name] += value
    for tree in trees:
        counts["tokens"] += len(tree.tokens) if tree.spans else 0
        for span in tree.spans:
            role, length, weight = span.branch.role, len(span.branch.path[-1]), span.branch.weight
            counts["tokens_scored"] += length
            counts[f"tokens_{role}"] += length
            counts[f"spans_{role}"] += 1
            counts[f"weighted_tokens_{role}"] += weight * length
            counts[f"weighted_spans_{role}"] += weight
    return dict(counts)


def _group(trees: Sequence[_Tree], max_tokens: int) -> list[list[_Tree]]:
    """Groups of trees with at most `max_tokens` padded tokens each; a longer tree is alone.

    Trees with the same roles stay together, because a term needs no backward pass in a micro-batch without
    its roles.
    """
    groups: list[list[_Tree]] = []
    for tree in sorted(trees, key=lambda tree: (tree.roles, -len(tree.tokens), tree.record_id)):
        fits = (
            groups
            and groups[-1][0].roles == tree.roles
            and (len(groups[-1]) + 1) * len(groups[-1][0].tokens) <= max_tokens
        )
        if fits:
            groups[-1].append(tree)
        else:
            groups.append([tree])
    return groups


def _pad(rows: Sequence[Sequence[int]], value: int) -> Tensor:
    width = max(len(row) for row in rows)
    return torch.tensor([[*row, *[value] * (width - len(row))] for row in rows], dtype=torch.long)


def _number_tensor(values: Sequence[Any]) -> Tensor:
    """A tensor of ids (long) or of real numbers (float32)."""
    tensor = torch.tensor(values)
    return tensor.float() if tensor.is_floating_point() else tensor.long()


def _stack_extra(extras: Sequence[Mapping[str, Any]], role: str) -> dict[str, list[Any]]:
    """The values of each extra, one entry per span."""
    names = set(extras[0])
    for extra in extras:
        if set(extra) != names:
            raise ValueError(
                f"role {role!r}: its spans have different extras, {sorted(names)} and {sorted(extra)}"
            )
    return {name: [extra[name] for extra in extras] for name in sorted(names)}


def _span_set(role: str, spans: Sequence[tuple[int, int, _Span]]) -> SpanSet:
    """All spans of one role; `spans` holds (row, record index, span)."""
    rows: list[int] = []
    sources: list[int] = []
    targets: list[int] = []
    owners: list[int] = []
    for index, (row, _, span) in enumerate(spans):
        run = span.branch.path[-1]
        rows += [row] * len(run)
        sources += [span.source, *range(span.first, span.first + len(run) - 1)]
        targets += run
        owners += [index] * len(run)
    branches = [span.branch for _, _, span in spans]
    token_extra = _stack_extra([branch.token_extra for branch in branches], role)
    span_extra = _stack_extra([branch.span_extra for branch in branches], role)
    return SpanSet(
        rows_N=torch.tensor(rows),
        sources_N=torch.tensor(sources),
        targets_N=torch.tensor(targets),
        spans_N=torch.tensor(owners),
        lengths_S=torch.tensor([len(branch.path[-1]) for branch in branches]),
        weights_S=torch.tensor([branch.weight for branch in branches], dtype=torch.float32),
        records_S=torch.tensor([record_index for _, record_index, _ in spans]),
        extra={
            **{
                name: _number_tensor([v for values in runs for v in values])
                for name, runs in token_extra.items()
            },
            **{name: _number_tensor(values) for name, values in span_extra.items()},
        },
    )


def _to_batch(
    trees: Sequence[_Tree], counts: dict[str, float], record_ids: tuple[str, ...], pad_id: int
) -> TokenBatch:
    """One micro-batch."""
    by_role: defaultdict[str, list[tuple[int, int, _Span]]] = defaultdict(list)
    for row, tree in enumerate(trees):
        for span in tree.spans:
            by_role[span.branch.role].append((row, tree.record_index, span))
    return TokenBatch(
        tokens_BT=_pad([tree.tokens for tree in trees], pad_id),
        positions_BT=_pad([tree.positions for tree in trees], 0),
        nodes_BT=_pad([tree.nodes for tree in trees], -1),
        parents_BM=_pad([tree.parents for tree in trees], -1),
        spans={role: _span_set(role, spans) for role, spans in sorted(by_role.items())},
        counts=counts,
        record_ids=record_ids,
    )


def pack(
    records: Sequence[Record], layouts: Sequence[Layout], max_tokens: int, pad_id: int
) -> list[TokenBatch]:
    """Pack the records of one optimizer step into micro-batches.

    Args:
        records: the records of the step.
        layouts: what is scored of each record.
        max_tokens: padded tokens per micro-batch; a record whose tree is longer gets a micro-batch of its
            own.
        pad_id: token id of the padding.

    Returns:
        At least one micro-batch; each carries the counts of the whole step.

    Raises:
        ValueError: no record, an empty prompt, or a record that lacks what a layout needs.
    """
    if not records:
        raise ValueError(
            "pack: expected at least one record, got none; a step is made of records, draw a batch first"
        )
    if max_tokens < 1:
        raise ValueError(f"pack: max_tokens must be >= 1, got {max_tokens}")
    laid_out = [[layout(record) for layout in layouts] for record in records]
    trees = [
        _grow_tree(i, record, parts) for i, (record, parts) in enumerate(zip(records, laid_out, strict=True))
    ]
    counts = _count(trees, [part for parts in laid_out for part in parts])
    # A step in which nothing is scored still needs one forward pass, so that the ranks stay in step.
    scored = [tree for tree in trees if tree.spans] or [min(trees, key=lambda tree: len(tree.tokens))]
    ids = tuple(record.id for record in records)
    return [_to_batch(group, counts, ids, pad_id) for group in _group(scored, max_tokens)]
