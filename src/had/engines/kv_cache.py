"""Keys and values of a batch of rows, and the attention that fills and reads them for packed tokens.

The engine feeds all its rows to the model as one sequence without padding, so that linear layers see real
tokens only; attention alone has to know which token belongs to which row. It is registered with transformers
under `ATTENTION` and gets a *plan* (`PrefillPlan` or `DecodePlan`) as a keyword of the model's forward.

Dimension legend: N packed tokens, R rows of the cache, T tokens of a row, H query heads, G key/value heads,
D head size.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import AttentionInterface, PretrainedConfig

# Unknown to transformers' mask functions on purpose: it then builds no mask at all.
ATTENTION = "had_packed"

# A decoding group ends before a row that is longer than this many times its first row: one more kernel call
# costs less than reading that much padding.
MAX_LENGTH_RATIO = 1.25


class KVRows:
    """Keys and values of `num_rows` rows of up to `num_tokens` tokens; token t of a row lies in column t."""

    def __init__(self, num_rows: int, num_tokens: int) -> None:
        self.num_rows = num_rows
        self.num_tokens = num_tokens
        self._layers: dict[int, tuple[Tensor, Tensor]] = {}

    @property
    def num_slots(self) -> int:
        """Token slots of the cache: its size."""
        return self.num_rows * self.num_tokens

    def layer(self, index: int, like: Tensor) -> tuple[Tensor, Tensor]:
        """Keys and values of one layer, each [R, G, T, D]; made, uninitialised, at the first use.

        like: [1, G, N, D], keys of this layer: gives number of heads, head size, type and device.
        """
        if index not in self._layers:
            shape = (self.num_rows, like.shape[1], self.num_tokens, like.shape[3])
            self._layers[index] = (like.new_empty(shape), like.new_empty(shape))
        return self._layers[index]


@dataclass(frozen=True)
class Segment:
    """The tokens of one row that a forward computes: columns [start, stop), after a prefix that is copied.

    Attributes:
        row: row of the cache.
        start: tokens of the prefix; they are copied from `source_row` of `source`.
        stop: tokens of the row after this forward.
        source: None when `start` is 0.
    """

    row: int
    start: int
    stop: int
    source: KVRows | None = None
    source_row: int = 0

    @property
    def num_tokens(self) -> int:
        """Tokens to compute."""
        return self.stop - self.start


class Plan(Protocol):
    """How packed tokens attend."""

    def attend(
        self, layer: int, query: Tensor, key: Tensor, value: Tensor, scale: float, window: int | None
    ) -> Tensor:
        """query: [1, H, N, D], key and value: [1, G, N, D]; returns [1, N, H, D].

        window: how many tokens back a query sees, itself included; None sees all.
        """


class PrefillPlan:
    """Many tokens per row, row by row over its own keys: no padding, and no mask across rows.

    A segment may copy its prefix from an earlier one of the same forward: every layer fills them in order.
    """

    def __init__(self, rows: KVRows, segments: Sequence[Segment]) -> None:
        self._rows = rows
        self._segments = segments
        self._masks: dict[tuple[int, int, int | None], Tensor] = {}

    def attend(
        self, layer: int, query: Tensor, key: Tensor, value: Tensor, scale: float, window: int | None
    ) -> Tensor:
        cache = self._rows.layer(layer, key)
        output = query.new_empty(query.shape[2], query.shape[1], value.shape[3])
        begin = 0
        for segment in self._segments:
            end = begin + segment.num_tokens
            sources = segment.source.layer(layer, key) if segment.source is not None else cache
            for kept, source, new in zip(cache, sources, (key, value), strict=True):
                kept[segment.row, :, : segment.start] = source[segment.source_row, :, : segment.start]
                kept[segment.row, :, segment.start : segment.stop] = new[0, :, begin:end]
                # decoding reads (and masks) beyond the end of shorter rows: stray NaN would survive the mask
                kept[segment.row, :, segment.stop :] = 0
            row_keys, row_values = (kept[segment.row, None, :, : segment.stop] for kept in cache)
            attended = self._attend_row(query[:, :, begin:end], row_keys, row_values, scale, window)
            output[begin:end] = attended[0].transpose(0, 1)
            begin = end
        return output.unsqueeze(0)

    def _attend_row(
        self, query: Tensor, key: Tensor, value: Tensor, scale: float, window: int | None
    ) -> Tensor:
        num_queries, num_keys = query.shape[2], key.shape[2]
        if window is not None and window >= num_keys:
            window = None
        repeats = query.shape[1] // key.shape[1]
        # CUDA's fast kernels take no mask together with enable_gqa; on a CPU repeating costs the same
        key, value = key.repeat_interleave(repeats, dim=1), value.repeat_interleave(repeats, dim=1)
        if num_queries == num_keys and window is None:
            return F.scaled_dot_product_attention(query, key, value, is_causal=True, scale=scale)
        mask = self._mask(num_queries, num_keys, window, query)
        return F.scaled_dot_product_attention(query, key, value, attn_mask=mask, scale=scale)

    def _mask(self, num_queries: int, num_keys: int, window: int | None, like: Tensor) -> Tensor:
        signature = (num_queries, num_keys, window)
        if signature not in self._masks:
            offset = num_keys - num_queries
            visible = torch.ones(num_queries, num_keys, dtype=torch.bool, device=like.device).tril(offset)
            if window is not None:
                visible &= ~torch.ones_like(visible).tril(offset - window)
            self._masks[signature] = _additive(visible, like)
        return self._masks[signature]


class DecodePlan:
    """One token for each of some rows, in runs of neighbouring rows of similar length.

    Rows that have ended are simply not among them: nothing is moved, and their keys stay for later prompts.

    Args:
        rows: the cache.
        active: rows that get a token, ascending.
        positions: column of the new token of each of these rows.
        device: where the keys live.
    """

    def __init__(
        self, rows: KVRows, active: Sequence[int], positions: Sequence[int], device: torch.device
    ) -> None:
        self._rows = rows
        self._active = list(active)
        self._positions = list(positions)
        self._runs = list(self._split_runs())
        self._active_N = torch.tensor(self._active, device=device)
        self._positions_N = torch.tensor(self._positions, device=device)
        self._masks: dict[tuple[int, int | None], Tensor] = {}

    def attend(
        self, layer: int, query: Tensor, key: Tensor, value: Tensor, scale: float, window: int | None
    ) -> Tensor:
        keys, values = self._rows.layer(layer, key)
        keys[self._active_N, :, self._positions_N] = key[0].transpose(0, 1)
        values[self._active_N, :, self._positions_N] = value[0].transpose(0, 1)
        # the query heads of one key/value head become query positions, so no key is repeated: [N, G, H/G, D]
        grouped = query[0].transpose(0, 1).unflatten(1, (key.shape[1], -1))
        attended = []
        for begin, end, num_keys in self._runs:
            rows = slice(self._active[begin], self._active[end - 1] + 1)
            mask = self._mask(begin, end, num_keys, window, query)
            attended.append(
                F.scaled_dot_product_attention(
                    grouped[begin:end],
                    keys[rows, :, :num_keys],
                    values[rows, :, :num_keys],
                    attn_mask=mask,
                    scale=scale,
                )
            )
        return torch.cat(attended).flatten(1, 2).unsqueeze(0)

    def _split_runs(self) -> Iterator[tuple[int, int, int]]:
        """(begin, end, number of keys) of each run, as indices of the active rows."""
        begin = 0
        for at in range(1, len(self._active) + 1):
            if at < len(self._active) and self._active[at] == self._active[at - 1] + 1:
                first, this = self._positions[begin] + 1, self._positions[at] + 1
                if this <= MAX_LENGTH_RATIO * first:
                    continue
            yield begin, at, max(self._positions[begin:at]) + 1
            begin = at

    def _mask(self, begin: int, end: int, num_keys: int, window: int | None, like: Tensor) -> Tensor:
        if (begin, window) not in self._masks:
            columns = torch.arange(num_keys, device=like.device)
            newest = self._positions_N[begin:end, None]
            visible = columns <= newest
            if window is not None:
                visible &= columns > newest - window
            self._masks[begin, window] = _additive(visible, like)[:, None, None, :]
        return self._masks[begin, window]


def _additive(visible: Tensor, like: Tensor) -> Tensor:
    """Zero where visible, else minus infinity; SDPA would convert a bool mask in every layer."""
    mask = torch.zeros(visible.shape, dtype=like.dtype, device=like.device)
    return mask.masked_fill_(~visible, float("-inf"))


def packed_attention(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    *,
    plan: Plan,
    scaling: float,
    sliding_window: int | None = None,
    softcap: float | None = None,
    s_aux: Tensor | None = None,
    **_: Any,
) -> tuple[Tensor, None]:
    """The attention function in the form that transformers calls.

    Raises:
        NotImplementedError: the model caps its attention scores or has attention sinks.
    """
    if softcap is not None or s_aux is not None:
        raise NotImplementedError(
            "packed attention knows no score cap and no attention sinks; use another engine"
        )
    return plan.attend(module.layer_idx, query, key, value, scaling, sliding_window), None  # type: ignore[arg-type]


@contextmanager
def packed_attention_in(config: PretrainedConfig) -> Iterator[None]:
    """Let the model of this configuration use `packed_attention`, for as long as the block runs."""
    before = config._attn_implementation
    config._attn_implementation = ATTENTION
    try:
        yield
    finally:
        config._attn_implementation = before


AttentionInterface.register(ATTENTION, packed_attention)
