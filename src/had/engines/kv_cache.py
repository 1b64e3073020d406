"""Keys and values of a batch of rows, and the attention that fills and reads them for packed tokens.

The engine feeds all its rows to the model as one sequence without padding, so that linear layers see real tokens only;
attention alone has to know which token belongs to which row. It is registered with transformers under `ATTENTION` and
gets a *plan* (`PrefillPlan` or `DecodePlan`) as a keyword argument of the model's forward.

Dimension legend: N packed tokens, R rows of the cache, T tokens of a row, H query heads, G key/value heads, D head size.
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


class KVRows:
    """Keys and values of up to `num_rows` rows of `num_tokens` tokens each; token t of a row lies in column t."""

    def __init__(self, num_rows: int, num_tokens: int) -> None:
        self.num_rows = num_rows
        self.num_tokens = num_tokens
        self._layers: dict[int, tuple[Tensor, Tensor]] = {}

    def layer(self, index: int, like_1GND: Tensor) -> tuple[Tensor, Tensor]:
        """Keys and values of one layer, each [R, G, T, D]; made at the first use.

        Zeros, because columns that are not written yet are read (and masked): stray NaN would survive the mask.
        """
        if index not in self._layers:
            shape = (self.num_rows, like_1GND.shape[1], self.num_tokens, like_1GND.shape[3])
            self._layers[index] = (like_1GND.new_zeros(shape), like_1GND.new_zeros(shape))
        return self._layers[index]

    def swap(self, a: int, b: int, num_tokens: int) -> None:
        """Exchange the first `num_tokens` tokens of two rows."""
        for tensors in self._layers.values():
            for tensor in tensors:
                kept = tensor[a, :, :num_tokens].clone()
                tensor[a, :, :num_tokens] = tensor[b, :, :num_tokens]
                tensor[b, :, :num_tokens] = kept


@dataclass(frozen=True)
class Segment:
    """The tokens of one row that are computed in this forward: columns [start, stop), after a prefix that is copied.

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


class Plan(Protocol):
    """How packed tokens attend."""

    def attend(self, layer: int, query: Tensor, key: Tensor, value: Tensor, scale: float, window: int | None) -> Tensor:
        """query: [1, H, N, D], key and value: [1, G, N, D]; returns [1, N, H, D]."""


class PrefillPlan:
    """Many tokens per row: row by row, each over its own keys, so there is no padding and no mask across rows."""

    def __init__(self, rows: KVRows, segments: Sequence[Segment]) -> None:
        self._rows = rows
        self._segments = segments
        self._masks: dict[tuple[int, int, int | None], Tensor] = {}

    def attend(self, layer: int, query: Tensor, key: Tensor, value: Tensor, scale: float, window: int | None) -> Tensor:
        keys, values = self._rows.layer(layer, key)
        output = query.new_empty(query.shape[2], query.shape[1], value.shape[3])
        begin = 0
        for segment in self._segments:
            row, start, stop = segment.row, segment.start, segment.stop
            end = begin + stop - start
            if segment.source is not None:
                # earlier segments of this very forward are valid sources: this layer has already filled them
                source_keys, source_values = segment.source.layer(layer, key)
                keys[row, :, :start] = source_keys[segment.source_row, :, :start]
                values[row, :, :start] = source_values[segment.source_row, :, :start]
            keys[row, :, start:stop] = key[0, :, begin:end]
            values[row, :, start:stop] = value[0, :, begin:end]
            attended = self._attend_row(
                query[:, :, begin:end], keys[row : row + 1, :, :stop], values[row : row + 1, :, :stop], scale, window
            )
            output[begin:end] = attended[0].transpose(0, 1)
            begin = end
        return output.unsqueeze(0)

    def _attend_row(self, query: Tensor, key: Tensor, value: Tensor, scale: float, window: int | None) -> Tensor:
        num_queries, num_keys = query.shape[2], key.shape[2]
        is_windowed = window is not None and window < num_keys
        if num_queries == num_keys and not is_windowed:
            return F.scaled_dot_product_attention(query, key, value, is_causal=True, scale=scale, enable_gqa=True)
        mask = self._mask(num_queries, num_keys, window if is_windowed else None, query)
        repeats = query.shape[1] // key.shape[1]  # CUDA's fast kernels take no mask together with enable_gqa
        key, value = key.repeat_interleave(repeats, dim=1), value.repeat_interleave(repeats, dim=1)
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
    """One token for each of the first rows of the cache."""

    def __init__(self, rows: KVRows, positions_N: Tensor) -> None:
        self._rows = rows
        self._positions_N = positions_N
        self._row_numbers_N = torch.arange(len(positions_N), device=positions_N.device)
        self._num_keys = int(positions_N.max()) + 1
        self._masks: dict[int | None, Tensor] = {}

    def attend(self, layer: int, query: Tensor, key: Tensor, value: Tensor, scale: float, window: int | None) -> Tensor:
        keys, values = self._rows.layer(layer, key)
        keys[self._row_numbers_N, :, self._positions_N] = key[0].transpose(0, 1)
        values[self._row_numbers_N, :, self._positions_N] = value[0].transpose(0, 1)
        num_rows, num_kv_heads, head_dim = query.shape[2], key.shape[1], query.shape[3]
        # the query heads of one key/value head become query positions: no key is repeated
        grouped = query[0].transpose(0, 1).reshape(num_rows, num_kv_heads, -1, head_dim)
        attended = F.scaled_dot_product_attention(
            grouped,
            keys[:num_rows, :, : self._num_keys],
            values[:num_rows, :, : self._num_keys],
            attn_mask=self._mask(window, query),
            scale=scale,
        )
        return attended.reshape(1, num_rows, query.shape[1], -1)

    def _mask(self, window: int | None, like: Tensor) -> Tensor:
        if window not in self._masks:
            columns = torch.arange(self._num_keys, device=like.device)
            visible = columns <= self._positions_N[:, None]
            if window is not None:
                visible &= columns > self._positions_N[:, None] - window
            self._masks[window] = _additive(visible, like)[:, None, None, :]
        return self._masks[window]


def _additive(visible: Tensor, like: Tensor) -> Tensor:
    """Zero where visible, minus infinity elsewhere, in the type of `like`: made once, while a bool mask is converted per layer."""
    return torch.zeros(visible.shape, dtype=like.dtype, device=like.device).masked_fill_(~visible, float("-inf"))


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
    **_: Any,
) -> tuple[Tensor, None]:
    """The attention function in the form that transformers calls."""
    return plan.attend(int(module.layer_idx), query, key, value, scaling, sliding_window), None  # type: ignore[arg-type]


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
