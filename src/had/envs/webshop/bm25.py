"""BM25 ranking with the settings of WebShop's search engine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from had.envs.webshop.analysis import terms

K1 = 0.9
B = 0.4
# Lucene keeps a document's length in one byte: exact up to here, then three bits behind the leading one.
_EXACT_LENGTHS = 24


class Postings(Protocol):
    """Which documents hold a term; the numbers of a collection of texts."""

    @property
    def num_documents(self) -> int: ...
    @property
    def mean_length(self) -> float:
        """Terms per document."""

    @property
    def lengths(self) -> NDArray[np.float32]:
        """[num_documents] terms of each document, rounded by `rounded_length`."""

    def of(self, term: str) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """The documents that hold a term, ascending, and how often each does."""


def rounded_length(length: int) -> int:
    """The length that the ranking sees, rounded down to what Lucene's byte can hold."""
    beyond = length - _EXACT_LENGTHS
    if beyond < 8:
        return length
    dropped = beyond.bit_length() - 4
    return _EXACT_LENGTHS + (beyond >> dropped << dropped)


def rank(postings: Postings, query: str, limit: int) -> list[int]:
    """The best documents for a query, best first; equal scores in the order of the collection.

    A document scores, summed over the query's terms (repetitions count),

        ln(1 + (N - n + 0.5) / (n + 0.5)) · f / (f + k1 · (1 - b + b · length / mean length))

    with N documents, n of them holding the term, f times in this one. Documents without any of the terms are
    not found.
    """
    scores = np.zeros(postings.num_documents, dtype=np.float64)
    for term, repeats in Counter(terms(query)).items():
        documents, frequencies = postings.of(term)
        if len(documents):
            num_holding = len(documents)
            idf = np.log(1 + (postings.num_documents - num_holding + 0.5) / (num_holding + 0.5))
            norm = K1 * (1 - B + B * postings.lengths[documents] / postings.mean_length)
            scores[documents] += (repeats * idf * frequencies / (frequencies + norm)).astype(np.float32)
    scores = scores.astype(np.float32)  # the precision in which ties are ties
    (found,) = np.nonzero(scores)
    if len(found) > limit:
        threshold = np.partition(scores[found], -limit)[-limit]
        found = found[scores[found] >= threshold]
    best = found[np.argsort(-scores[found], kind="stable")][:limit]
    return [int(document) for document in best]


class MemoryPostings:
    """Postings of texts that fit into memory."""

    def __init__(self, texts: Iterable[str]) -> None:
        lengths = []
        rows: dict[str, list[tuple[int, int]]] = {}
        for document, text in enumerate(texts):
            counts = Counter(terms(text))
            lengths.append(counts.total())
            for term, count in counts.items():
                rows.setdefault(term, []).append((document, count))
        self.num_documents = len(lengths)
        self.mean_length = sum(lengths) / max(len(lengths), 1)
        self.lengths = np.array([rounded_length(length) for length in lengths], dtype=np.float32)
        self._rows = {term: np.array(row, dtype=np.int32).T for term, row in rows.items()}

    def of(self, term: str) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        row = self._rows.get(term)
        if row is None:
            empty = np.zeros(0, dtype=np.int32)
            return empty, empty
        return row[0], row[1]
