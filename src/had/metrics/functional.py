"""All metrics of a set of episodes at once: what evaluations store and reports print. No torch here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from had.metrics import harness_utilization, stall, success
from had.metrics.bootstrap import Statistic, paired_changes, replicated_sums
from had.metrics.counts import FloatArray, as_vector
from had.metrics.harness_utilization import count_utilization, utilization_estimates
from had.metrics.intervals import Estimate, mean_of, wilson
from had.metrics.stall import count_stalls, stall_estimates
from had.metrics.success import count_success, success_estimates
from had.records import Episode

Metrics = dict[str, dict[str, float | None]]
"""{metric: {"value", "low", "high", "count"}}; shares are fractions."""

Counter = Callable[[Sequence[Episode]], object]
_FAMILIES: tuple[tuple[Counter, dict[str, Statistic]], ...] = (
    (count_success, success.STATISTICS),
    (count_utilization, harness_utilization.STATISTICS),
    (count_stalls, stall.STATISTICS),
)


def evaluate_metrics(episodes: Sequence[Episode]) -> Metrics:
    """Every metric of some episodes, with its interval and count.

    Returns:
        sr, score, reward, turns_success, num_failed, hu, hu_<component>, prevention, recovery. What has no
        applicable case has count 0 and None elsewhere.
    """
    return {name: estimate.as_dict() for name, estimate in _estimates(episodes).items()}


def aggregate_metrics(episodes_by_split: Mapping[str, Sequence[Episode]]) -> Metrics:
    """The metrics over several splits, the two ways of joining success rates named apart.

    `sr_mean_of_splits` is the unweighted mean of the splits' rates (the paper's aggregate for ALFWorld:
    57.43), `sr_pooled` the rate over all episodes (57.3); there is no plain `sr`. Everything else is pooled.
    """
    estimates = _estimates([e for episodes in episodes_by_split.values() for e in episodes])
    counts = [count_success(episodes) for episodes in episodes_by_split.values()]
    rates = [wilson(c.num_won, c.num_episodes) for c in counts]
    joined = {"sr_mean_of_splits": mean_of(rates), "sr_pooled": estimates.pop("sr"), **estimates}
    return {name: estimate.as_dict() for name, estimate in joined.items()}


TaskCounts = list[list[tuple[str, list[float]]]]
"""Per family of metrics the (task id, counts) of every episode: plain data, small enough for a checkpoint."""


def task_counts(episodes: Iterable[Episode]) -> TaskCounts:
    """What paired differences need to know of some episodes."""
    played = list(episodes)
    return [[(id, row.tolist()) for id, row in task_rows(played, count)] for count, _ in _FAMILIES]


def paired_differences(before: TaskCounts, after: TaskCounts) -> Metrics:
    """Differences after − before of every metric over the tasks that both played, by a task-paired bootstrap.

    `count` is the number of shared tasks. A metric that is undefined on either side is empty.
    """
    return {name: estimate.as_dict() for name, estimate in _changes(before, after).items()}


def aggregate_differences(before: Mapping[str, TaskCounts], after: Mapping[str, TaskCounts]) -> Metrics:
    """The paired differences over several splits, success rates named as in `aggregate_metrics`."""
    shared = [split for split in before if split in after]
    pooled = _changes(*(_joined([side[split] for split in shared]) for side in (before, after)))
    by_split = [_changes(before[split], after[split])["sr"] for split in shared]
    joined = {"sr_mean_of_splits": mean_of(by_split), "sr_pooled": pooled.pop("sr"), **pooled}
    return {name: estimate.as_dict() for name, estimate in joined.items()}


def _joined(parts: Sequence[TaskCounts]) -> TaskCounts:
    """The rows of several sets of episodes."""
    return [[row for part in parts for row in part[family]] for family in range(len(_FAMILIES))]


def _changes(before: TaskCounts, after: TaskCounts) -> dict[str, Estimate]:
    changes: dict[str, Estimate] = {}
    for (_, statistics), old, new in zip(_FAMILIES, before, after, strict=True):
        changes |= paired_changes(_as_rows(old), _as_rows(new), statistics)
    return changes


def _as_rows(rows: Sequence[tuple[str, Sequence[float]]]) -> list[tuple[str, FloatArray]]:
    return [(id, np.array(counts)) for id, counts in rows]


def task_rows(episodes: Iterable[Episode], count: Counter) -> list[tuple[str, FloatArray]]:
    """(task id, counts) of each episode, for resampling."""
    return [(episode.task.id, as_vector(count([episode]))) for episode in episodes]


def _estimates(episodes: Sequence[Episode]) -> dict[str, Estimate]:
    successes = replicated_sums(task_rows(episodes, count_success), success.NUM_COUNTS)
    utilization = replicated_sums(task_rows(episodes, count_utilization), harness_utilization.NUM_COUNTS)
    return {
        **success_estimates(successes),
        **utilization_estimates(utilization),
        **stall_estimates(as_vector(count_stalls(episodes))),
    }
