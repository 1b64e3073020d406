"""Confidence intervals: Wilson for shares, Student for seeds, and what follows for differences and means.

All intervals have the same level, 95 %. Resampling lives in `bootstrap`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist, fmean, stdev

import numpy as np

LEVEL = 0.95
Z = NormalDist().inv_cdf(0.5 + LEVEL / 2)


@dataclass(frozen=True)
class Estimate:
    """A number, its 95 % interval and how many cases it rests on.

    Attributes:
        value: the number; None when there is no case. Shares are fractions.
        low, high: the limits; None when there is no case, or no interval can be given.
        count: the cases: episodes, turns, runs of stalled turns, tasks or seeds.
    """

    value: float | None = None
    low: float | None = None
    high: float | None = None
    count: int = 0

    def as_dict(self) -> dict[str, float | None]:
        """The form in which run folders store it."""
        return {"value": self.value, "low": self.low, "high": self.high, "count": self.count}


def wilson(hits: int, total: int) -> Estimate:
    """Wilson's score interval of a share, without continuity correction.

    With p = hits/total and z the normal quantile: (p + z²/2n ± z·sqrt(p(1−p)/n + z²/4n²)) / (1 + z²/n). It
    stays inside [0, 1] and is not empty at 0 or `total` hits. It takes the cases as independent.

    Args:
        hits: successes, 0 <= hits <= total.
        total: cases; 0 gives an empty estimate.
    """
    if total == 0:
        return Estimate()
    share = hits / total
    centre = share + Z**2 / (2 * total)
    half = Z * math.sqrt(share * (1 - share) / total + Z**2 / (4 * total**2))
    scale = 1 + Z**2 / total
    # at the ends the limits are exactly 0 and 1; rounding would leave 1e-17
    low = 0.0 if hits == 0 else (centre - half) / scale
    high = 1.0 if hits == total else (centre + half) / scale
    return Estimate(share, low, high, total)


def difference(before: Estimate, after: Estimate) -> Estimate:
    """`after` − `before` from two estimates alone (Newcombe's hybrid of the two intervals).

    low = d − sqrt((a − a_low)² + (b_high − b)²), high = d + sqrt((a_high − a)² + (b − b_low)²). It takes the
    two as independent, so on the same tasks it is usually too wide; with the episodes at hand use
    `bootstrap.paired_changes`. `count` is the smaller of the two.
    """
    if before.value is None or after.value is None:
        return Estimate()
    value = after.value - before.value
    count = min(before.count, after.count)
    if before.low is None or before.high is None or after.low is None or after.high is None:
        return Estimate(value, count=count)
    down = math.hypot(after.value - after.low, before.high - before.value)
    up = math.hypot(after.high - after.value, before.value - before.low)
    return Estimate(value, value - down, value + up, count)


def mean_of(estimates: Sequence[Estimate]) -> Estimate:
    """Unweighted mean of independent estimates, its limits by the same rule as `difference`.

    Empty when there is no estimate or one of them is empty: a mean over fewer parts would be another
    quantity. `count` is the sum.
    """
    values = [e.value for e in estimates if e.value is not None]
    if not estimates or len(values) < len(estimates):
        return Estimate()
    value, count = fmean(values), sum(e.count for e in estimates)
    limits = [(e.value - e.low, e.high - e.value) for e in estimates if None not in (e.low, e.high)]  # type: ignore[operator]
    if len(limits) < len(estimates):
        return Estimate(value, count=count)
    down, up = (math.hypot(*side) / len(estimates) for side in zip(*limits, strict=True))
    return Estimate(value, value - down, value + up, count)


def across_seeds(values: Sequence[float]) -> Estimate:
    """Mean over independent runs with Student's interval: mean ± t·s/sqrt(n), n − 1 degrees of freedom.

    Args:
        values: one number per seed. One seed gives a value without limits, none an empty estimate.
    """
    if not values:
        return Estimate()
    mean = fmean(values)
    if len(values) == 1:
        return Estimate(mean, count=1)
    half = student_quantile(0.5 + LEVEL / 2, len(values) - 1) * stdev(values) / math.sqrt(len(values))
    return Estimate(mean, mean - half, mean + half, len(values))


def student_quantile(probability: float, freedom: int) -> float:
    """Quantile of Student's t, for probability in (0.5, 1) and at least one degree of freedom.

    With t = sqrt(freedom)·tan θ the density becomes c·cos(θ)^(freedom−1), smooth on a bounded interval: the
    trapezoid rule on a fine grid is accurate to about 1e-6, which spares a dependency on scipy.
    """
    angles = np.linspace(0.0, math.pi / 2, 100_001)
    density = np.cos(angles) ** (freedom - 1)
    area = np.concatenate([[0.0], np.cumsum((density[1:] + density[:-1]) / 2)])
    angle = np.interp((probability - 0.5) * 2 * area[-1], area, angles)
    return math.sqrt(freedom) * math.tan(angle)
