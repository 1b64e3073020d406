"""Which tokens of a prompt have been computed before: prompts of one call, and of the calls before it, share beginnings.

In lexicographic order every prompt shares its longest beginning with one of its two neighbours, so one sorted list finds
the system prompt that all prompts share, the history that two views share, and the earlier turns of an episode alike.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from had.engines.kv_cache import KVRows

TOKEN_TYPE = np.dtype(">u4")  # big-endian: the order of the bytes is the order of the ids


class Place(NamedTuple):
    """The tokens whose keys and values lie in one row of a cache (`tokens`: see `encode`)."""

    tokens: bytes
    number: int  # unique: keeps two places of equal tokens from being compared any further
    rows: KVRows
    row: int


def encode(ids: Sequence[int]) -> bytes:
    """Token ids as bytes that sort in the order of the ids."""
    return np.asarray(ids, dtype=TOKEN_TYPE).tobytes()


def num_common(a: bytes, b: bytes) -> int:
    """How many tokens two encoded prompts have in common at their beginning."""
    length = min(len(a), len(b)) // TOKEN_TYPE.itemsize
    differs = np.frombuffer(a, TOKEN_TYPE, length) != np.frombuffer(b, TOKEN_TYPE, length)
    return int(differs.argmax()) if differs.any() else length


class PrefixStore:
    """The caches of the last batches, up to a number of token slots, and where in them a prompt's beginning lies."""

    def __init__(self, max_tokens: int) -> None:
        self._max_tokens = max_tokens
        self._batches: deque[tuple[KVRows, list[Place]]] = deque()
        self._places: list[Place] = []
        self._num_added = 0

    def add(self, rows: KVRows, tokens_of_rows: Iterable[bytes]) -> None:
        """Keep a cache whose row i holds the i-th tokens; the oldest caches make room."""
        places = [Place(tokens, self._num_added + i, rows, i) for i, tokens in enumerate(tokens_of_rows)]
        self._num_added += len(places)
        self._batches.append((rows, places))
        while self._batches and sum(kept.num_rows * kept.num_tokens for kept, _ in self._batches) > self._max_tokens:
            self._batches.popleft()
        self._places = sorted(place for _, batch in self._batches for place in batch)

    def find(self, tokens: bytes) -> tuple[int, KVRows | None, int]:
        """The longest known beginning of a prompt: its number of tokens, the cache and the row where it lies."""
        at = bisect_left(self._places, tokens, key=lambda place: place.tokens)
        near = [(num_common(place.tokens, tokens), place) for place in self._places[max(at - 1, 0) : at + 1]]
        if not near:
            return 0, None, 0
        length, place = max(near, key=lambda found: found[0])
        return length, place.rows, place.row

    def clear(self) -> None:
        """Forget everything: the weights have changed."""
        self._batches.clear()
        self._places = []

