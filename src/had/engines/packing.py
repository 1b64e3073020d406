"""How sequences become batches, and batches become packed prefill forwards that compute nothing twice."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from had.engines.kv_cache import KVRows, Segment
from had.engines.prefix import PrefixStore, num_common

# Copying and masking a shorter prefix costs more than computing it.
MIN_SHARED_TOKENS = 16


@dataclass(frozen=True)
class Row:
    """One sequence to compute.

    Attributes:
        request: index of the request that it belongs to.
        ids: token ids.
        tokens: the same ids, encoded.
        keep_from: first position whose logits are wanted; they are wanted from there to the end.
    """

    request: int
    ids: tuple[int, ...]
    tokens: bytes
    keep_from: int


@dataclass(frozen=True)
class PackedTokens:
    """The input of one prefill forward.

    Attributes:
        segments: which rows it computes.
        ids, positions: of the packed tokens.
        kept: indices of the packed tokens whose logits are wanted.
        num_kept: how many of them belong to each segment.
    """

    segments: tuple[Segment, ...]
    ids: list[int]
    positions: list[int]
    kept: list[int]
    num_kept: list[int]


def split_batches(rows: Iterable[Row], num_new: int, max_slots: int) -> Iterator[list[Row]]:
    """Batches whose cache (rows times longest row with its reply) has at most `max_slots` slots.

    Sequences that begin alike come into the same batch; inside a batch the rows ascend in length, so that
    decoding finds neighbours of similar length. A row that is too long alone gets a batch of its own.
    """
    batch: list[Row] = []
    longest = 0
    for row in sorted(rows, key=lambda row: row.tokens):
        longest = max(longest, len(row.ids) + num_new)
        if batch and longest * (len(batch) + 1) > max_slots:
            yield sorted(batch, key=lambda row: len(row.ids))
            batch, longest = [], len(row.ids) + num_new
        batch.append(row)
    if batch:
        yield sorted(batch, key=lambda row: len(row.ids))


def pack(batch: list[Row], rows: KVRows, prefixes: PrefixStore, max_tokens: int) -> Iterator[PackedTokens]:
    """Prefill forwards of at most `max_tokens` tokens (or one longer row) that fill row i with `batch[i]`."""
    chunk: list[Segment] = []
    for segment in _segments(batch, rows, prefixes):
        if chunk and sum(s.num_tokens for s in chunk) + segment.num_tokens > max_tokens:
            yield _packed(batch, chunk)
            chunk = []
        chunk.append(segment)
    yield _packed(batch, chunk)


def _segments(batch: list[Row], rows: KVRows, prefixes: PrefixStore) -> Iterator[Segment]:
    """What is left to compute of each row after its longest known beginning, in lexicographic order."""
    before: int | None = None
    for index in sorted(range(len(batch)), key=lambda index: batch[index].tokens):
        row = batch[index]
        num_shared, place = prefixes.find(row.tokens)
        source, source_row = (place.rows, place.row) if place is not None else (None, 0)
        if before is not None:
            num_shared_here = num_common(batch[before].tokens, row.tokens)
            if num_shared_here > num_shared:
                num_shared, source, source_row = num_shared_here, rows, before
        num_shared = min(num_shared, row.keep_from)
        if num_shared < MIN_SHARED_TOKENS:
            num_shared, source, source_row = 0, None, 0
        yield Segment(index, num_shared, len(row.ids), source, source_row)
        before = index


def _packed(batch: list[Row], segments: list[Segment]) -> PackedTokens:
    packed = PackedTokens(tuple(segments), [], [], [], [])
    for segment in segments:
        row = batch[segment.row]
        first_kept = len(packed.ids) + row.keep_from - segment.start
        packed.ids.extend(row.ids[segment.start : segment.stop])
        packed.positions.extend(range(segment.start, segment.stop))
        packed.kept.extend(range(first_kept, len(packed.ids)))
        packed.num_kept.append(len(packed.ids) - first_kept)
    return packed
