"""Seeded bootstrap over tasks, in a form that can be summed over processes.

Instead of drawing tasks with replacement, every task gets an independent Poisson(1) weight in each replicate
(the Poisson bootstrap). The weights follow from the task's id alone, so that
- sums of weighted counts over ranks equal the sums in one process, whatever the split;
- two evaluations of the same tasks share their weights: the difference of their replicates is a task-paired
bootstrap;
- several episodes of one task move together.

Dimension legend: R replicates, N tasks, D counts.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from had.metrics.counts import FloatArray, ratio
from had.metrics.intervals import LEVEL, Estimate

NUM_REPLICATES = 2000  # the limits then vary by about 1 % of the interval's width between seeds
SEED = 0
Statistic = Callable[[FloatArray], FloatArray]
"""Maps summed counts [..., D] to values [...], NaN where undefined."""


@lru_cache(maxsize=8192)
def task_weights(task_id: str, seed: int = SEED) -> NDArray[np.uint8]:
    """[R] weight of one task in each replicate."""
    digest = hashlib.blake2b(f"{seed}/{task_id}".encode(), digest_size=4).digest()
    # RandomState and not Generator: its stream is frozen, so intervals do not change with numpy's version
    weights = np.random.RandomState(int.from_bytes(digest)).poisson(1.0, NUM_REPLICATES)
    return weights.astype(np.uint8)


@dataclass(frozen=True)
class ReplicatedSums:
    """Sums of counts over episodes, plain and under the weights of every replicate.

    Attributes:
        sums_D: [D] plain sums.
        replicates_RD: [R, D] weighted sums.
    """

    sums_D: FloatArray
    replicates_RD: FloatArray

    def estimate(self, statistic: Statistic, count: int) -> Estimate:
        """The statistic of the plain sums, with the percentile interval of the replicates."""
        return percentile_estimate(float(statistic(self.sums_D)), statistic(self.replicates_RD), count)


def replicated_sums(rows: Iterable[tuple[str, FloatArray]], num_counts: int) -> ReplicatedSums:
    """Sum `(task id, [D] counts)` rows; no row gives zeros of width `num_counts`."""
    sums, replicates = np.zeros(num_counts), np.zeros((NUM_REPLICATES, num_counts))
    for task_id, counts in rows:
        sums += counts
        replicates += task_weights(task_id)[:, None] * counts
    return ReplicatedSums(sums, replicates)


def percentile_estimate(value: float, replicates_R: FloatArray, count: int) -> Estimate:
    """`value` with the central 95 % of the replicates; undefined (NaN) replicates are left out.

    The interval has no width when all tasks agree (no success at all): a resample cannot see what the sample
    lacks.
    """
    if count == 0 or np.isnan(value):
        return Estimate()
    low, high = np.nanquantile(replicates_R, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Estimate(value, float(low), float(high), count)


def mean_interval(values: Mapping[str, float]) -> Estimate:
    """Mean over tasks of one number per task, with its bootstrap interval."""
    rows = ((task_id, np.array([value, 1.0])) for task_id, value in values.items())
    return replicated_sums(rows, 2).estimate(lambda sums: ratio(sums[..., 0], sums[..., 1]), len(values))


def paired_changes(
    before: Sequence[tuple[str, FloatArray]],
    after: Sequence[tuple[str, FloatArray]],
    statistics: Mapping[str, Statistic],
) -> dict[str, Estimate]:
    """statistic(after) − statistic(before) over the tasks that both have, resampled as pairs.

    Args:
        before: rows of (task id, [D] counts); a task may have several.
        after: the same of the other side.
        statistics: by name, from summed counts to the number that is compared.

    Returns:
        The differences by name; `count` is the number of shared tasks.
    """
    shared = {task_id for task_id, _ in before} & {task_id for task_id, _ in after}
    if not shared:
        return {name: Estimate() for name in statistics}
    num_counts = len(before[0][1])
    old, new = (replicated_sums([r for r in rows if r[0] in shared], num_counts) for rows in (before, after))
    changes = {}
    for name, statistic in statistics.items():
        value = float(statistic(new.sums_D)) - float(statistic(old.sums_D))
        replicates_R = statistic(new.replicates_RD) - statistic(old.replicates_RD)
        changes[name] = percentile_estimate(value, replicates_R, len(shared))
    return changes
