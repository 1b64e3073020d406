"""All metrics of a set of episodes at once: what evaluations store and reports print. No torch here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

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


def paired_differences(before: Sequence[Episode], after: Sequence[Episode]) -> Metrics:
    """Differences after − before of every metric over the tasks that both played, by a task-paired bootstrap.

    `count` is the number of shared tasks. A metric that is undefined on either side is empty.
    """
    differences: dict[str, Estimate] = {}
    for count, statistics in _FAMILIES:
        differences |= paired_changes(task_rows(before, count), task_rows(after, count), statistics)
    return {name: estimate.as_dict() for name, estimate in differences.items()}


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
