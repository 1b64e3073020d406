"""Which beginning of a prompt has been computed before, in this call or in one of the last ones.

In lexicographic order a prompt shares its longest beginning with one of its two neighbours: one sorted list
finds the system prompt that all prompts share, the history that two views share, and the earlier turns of an
episode alike.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from had.engines.kv_cache import KVRows

TOKEN_TYPE = np.dtype(">u4")  # big-endian: the order of the bytes is the order of the ids


@dataclass(frozen=True)
class Place:
    """One row of a cache and the encoded tokens whose keys and values lie in it."""

    tokens: bytes
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
    """The caches of the last batches, up to a number of token slots; the oldest ones make room."""

    def __init__(self, max_slots: int) -> None:
        self._max_slots = max_slots
        self._batches: deque[tuple[KVRows, list[Place]]] = deque()
        self._places: list[Place] = []

    def add(self, rows: KVRows, tokens_of_rows: Iterable[bytes]) -> None:
        """Keep a cache whose row i holds the i-th tokens, unless it is larger than the whole store."""
        if rows.num_slots > self._max_slots:
            return
        self._batches.append((rows, [Place(tokens, rows, i) for i, tokens in enumerate(tokens_of_rows)]))
        while sum(kept.num_slots for kept, _ in self._batches) > self._max_slots:
            self._batches.popleft()
        places = [place for _, batch in self._batches for place in batch]
        self._places = sorted(places, key=lambda place: place.tokens)

    def find(self, tokens: bytes) -> tuple[int, Place | None]:
        """The longest known beginning of a prompt: its number of tokens, and where it lies."""
        at = bisect_left(self._places, tokens, key=lambda place: place.tokens)
        neighbours = self._places[max(at - 1, 0) : at + 1]
        found = [(num_common(place.tokens, tokens), place) for place in neighbours]
        return max(found, key=lambda pair: pair[0], default=(0, None))

    def clear(self) -> None:
        """Forget everything: the weights have changed."""
        self._batches.clear()
        self._places = []
