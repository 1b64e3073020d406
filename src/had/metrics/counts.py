"""Counts that the metrics are made of: shares of hits, and ratios of sums."""

from __future__ import annotations

from dataclasses import astuple, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Share:
    """`hits` of `total` cases.

    Attributes:
        hits: cases that count as a success, 0 <= hits <= total.
        total: all applicable cases.
    """

    hits: int = 0
    total: int = 0

    def __post_init__(self) -> None:
        assert 0 <= self.hits <= self.total, f"expected 0 <= hits <= total, got {self.hits} of {self.total}"

    def __add__(self, other: Share) -> Share:
        return Share(self.hits + other.hits, self.total + other.total)

    @property
    def value(self) -> float | None:
        """The fraction, None when there is no case."""
        return self.hits / self.total if self.total else None


NO_CASE = Share()


def as_vector(counts: Any) -> FloatArray:
    """The numbers of a dataclass of numbers and shares, in the order of its fields, as one flat vector."""
    return np.concatenate([np.ravel(field) for field in astuple(counts)]).astype(np.float64)


def ratio(numerators: FloatArray, denominators: FloatArray) -> FloatArray:
    """Element-wise numerators / denominators, NaN where a denominator is 0."""
    is_defined = denominators > 0
    return np.where(is_defined, numerators / np.where(is_defined, denominators, 1.0), np.nan)
