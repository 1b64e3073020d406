"""torchmetrics classes over the counts: sum states only, so uneven and empty ranks give the pooled result.

`update` takes episodes (or records) as the functional part does, `compute` returns `{metric: {"value",
"low", "high", "count"}}` and must be called on every rank. Nothing that differs between ranks decides
whether a collective runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torchmetrics import Metric

from had.metrics import disagreement, harness_utilization, stall, success
from had.metrics.bootstrap import NUM_REPLICATES, ReplicatedSums, replicated_sums
from had.metrics.counts import FloatArray, as_vector
from had.metrics.functional import Metrics, task_rows
from had.metrics.intervals import Estimate
from had.records import Episode, Record


class _SumMetric(Metric):
    """Adds vectors of counts, and for the bootstrap their weighted sums."""

    full_state_update = False
    is_differentiable = False
    higher_is_better = None
    sums_D: Tensor
    replicates_RD: Tensor

    def __init__(self, num_counts: int, num_replicates: int = 0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        # counts are whole numbers: exact in float64, in any order of summation
        self.add_state("sums_D", torch.zeros(num_counts, dtype=torch.float64), dist_reduce_fx="sum")
        self.add_state(
            "replicates_RD",
            torch.zeros(num_replicates, num_counts, dtype=torch.float64),
            dist_reduce_fx="sum",
        )

    def _add(self, sums: ReplicatedSums) -> None:
        self.sums_D += torch.from_numpy(sums.sums_D).to(self.sums_D)
        self.replicates_RD += torch.from_numpy(sums.replicates_RD).to(self.replicates_RD)

    def _sums(self) -> ReplicatedSums:
        return ReplicatedSums(self.sums_D.cpu().numpy(), self.replicates_RD.cpu().numpy())


def _as_metrics(estimates: dict[str, Estimate]) -> Metrics:
    return {name: estimate.as_dict() for name, estimate in estimates.items()}


def _plain(counts: FloatArray) -> ReplicatedSums:
    """Counts that need no bootstrap."""
    return ReplicatedSums(counts, np.zeros((0, len(counts))))


class SuccessMetric(_SumMetric):
    """sr, score, reward, turns_success, num_failed."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(success.NUM_COUNTS, NUM_REPLICATES, **kwargs)

    def update(self, episodes: Sequence[Episode]) -> None:
        """Add finished episodes of this rank; an empty list is fine."""
        self._add(replicated_sums(task_rows(episodes, success.count_success), success.NUM_COUNTS))

    def compute(self) -> Metrics:
        return _as_metrics(success.success_estimates(self._sums()))


class HarnessUtilization(_SumMetric):
    """hu and hu_<component>."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(harness_utilization.NUM_COUNTS, NUM_REPLICATES, **kwargs)

    def update(self, episodes: Sequence[Episode]) -> None:
        """Add finished episodes of this rank; an empty list is fine."""
        rows = task_rows(episodes, harness_utilization.count_utilization)
        self._add(replicated_sums(rows, harness_utilization.NUM_COUNTS))

    def compute(self) -> Metrics:
        return _as_metrics(harness_utilization.utilization_estimates(self._sums()))


class StallMetric(_SumMetric):
    """prevention and recovery."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(stall.NUM_COUNTS, **kwargs)

    def update(self, episodes: Sequence[Episode]) -> None:
        """Add finished episodes of this rank; an empty list is fine."""
        self._add(_plain(as_vector(stall.count_stalls(episodes))))

    def compute(self) -> Metrics:
        return _as_metrics(stall.stall_estimates(self._sums().sums_D))


class Disagreement(_SumMetric):
    """disagreement, disagreement_0 … disagreement_9, num_unparsable, num_unlabeled."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(disagreement.NUM_COUNTS, **kwargs)

    def update(self, records: Sequence[Record]) -> None:
        """Add labelled records of this rank; an empty list is fine."""
        self._add(_plain(as_vector(disagreement.count_disagreement(records))))

    def compute(self) -> Metrics:
        return _as_metrics(disagreement.disagreement_estimates(self._sums().sums_D))
