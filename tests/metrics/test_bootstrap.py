import random

import numpy as np
import pytest
from episode_maker import episode, random_episodes

from had.metrics.bootstrap import mean_interval, paired_changes, task_weights
from had.metrics.counts import ratio
from had.metrics.functional import (
    aggregate_differences,
    aggregate_metrics,
    evaluate_metrics,
    paired_differences,
    task_counts,
)
from had.metrics.intervals import Estimate, wilson


def mean(sums):
    return ratio(sums[..., 0], sums[..., 1])


def rows(values):
    return [(task, np.array([value, 1.0])) for task, value in values.items()]


def test_weights_follow_from_task_and_seed_alone():
    first, again = task_weights("a").copy(), task_weights.__wrapped__("a")
    assert (first == again).all()
    assert not (first == task_weights("b")).all()
    assert not (first == task_weights("a", seed=1)).all()
    assert first[:16].tolist() == [0, 3, 1, 0, 0, 0, 2, 0, 0, 2, 0, 0, 0, 0, 2, 1]
    assert first.mean() == pytest.approx(1.0, abs=0.1)


def test_mean_interval_agrees_with_the_normal_one():
    rng = random.Random(0)
    values = {f"task/{i}": rng.gauss(5.0, 2.0) for i in range(400)}
    estimate = mean_interval(values)
    half = 1.96 * np.std(list(values.values()), ddof=1) / 20
    assert estimate.value == pytest.approx(np.mean(list(values.values())))
    assert estimate.low == pytest.approx(estimate.value - half, abs=0.15 * half)
    assert estimate.high == pytest.approx(estimate.value + half, abs=0.15 * half)


def test_mean_interval_edge_cases():
    assert mean_interval({}) == Estimate()
    assert mean_interval({"a": 2.0}) == Estimate(2.0, 2.0, 2.0, 1)


def test_coverage_of_the_mean_interval():
    """With 40 tasks, about 95 % of the intervals hold the truth."""
    rng = random.Random(1)
    covered = 0
    for trial in range(100):
        estimate = mean_interval({f"{trial}/{i}": rng.random() for i in range(40)})
        covered += estimate.low <= 0.5 <= estimate.high
    assert 0.90 <= covered / 100 <= 0.99


def test_pairs_narrow_the_difference():
    rng = random.Random(2)
    before = {f"task/{i}": rng.gauss(0.0, 10.0) for i in range(100)}
    after = {task: value + 1.0 + rng.gauss(0.0, 0.1) for task, value in before.items()}
    change = paired_changes(rows(before), rows(after), {"mean": mean})["mean"]
    assert change.value == pytest.approx(1.0, abs=0.05)
    assert change.high - change.low < 0.1
    assert change.count == 100


def test_only_shared_tasks_are_compared():
    change = paired_changes(rows({"a": 1.0, "b": 9.0}), rows({"a": 2.0, "c": 7.0}), {"mean": mean})["mean"]
    assert change == Estimate(1.0, 1.0, 1.0, 1)
    assert paired_changes(rows({"a": 1.0}), rows({"b": 1.0}), {"mean": mean}) == {"mean": Estimate()}


def test_paired_interval_of_success_agrees_with_the_closed_form():
    """Discordant pairs b, c of n: the variance of the difference is (b + c − (b − c)²/n) / n²."""
    statuses = [("out", "won")] * 40 + [("won", "out")] * 10 + [("won", "won")] * 30 + [("out", "out")] * 20
    before = [episode("", status=s, task=f"t{i}") for i, (s, _) in enumerate(statuses)]
    after = [episode("", status=s, task=f"t{i}") for i, (_, s) in enumerate(statuses)]
    change = paired_differences(task_counts(before), task_counts(after))["sr"]
    half = 1.96 * np.sqrt(50 - 900 / 100) / 100
    assert change["value"] == pytest.approx(0.3)
    assert change["low"] == pytest.approx(0.3 - half, abs=0.015)
    assert change["high"] == pytest.approx(0.3 + half, abs=0.015)
    assert change["count"] == 100


def test_paired_differences_equal_the_differences_of_the_metrics():
    before, after = random_episodes(3, 50), random_episodes(4, 50)
    changes = paired_differences(task_counts(before), task_counts(after))
    old, new = evaluate_metrics(before), evaluate_metrics(after)
    for name, change in changes.items():
        assert change["value"] == pytest.approx(new[name]["value"] - old[name]["value"]), name
        assert change["low"] <= change["value"] <= change["high"], name
    assert set(changes) == set(old) - {"num_failed"}


def test_aggregate_differences_name_the_two_ways_of_joining_splits():
    sides = [{"a": random_episodes(seed, 40), "b": random_episodes(seed + 10, 60)} for seed in (3, 4)]
    counts = [{split: task_counts(episodes) for split, episodes in side.items()} for side in sides]
    changes = aggregate_differences(*counts)
    old, new = (aggregate_metrics(side) for side in sides)
    for name in ("sr_mean_of_splits", "sr_pooled", "hu", "turns_success"):
        assert changes[name]["value"] == pytest.approx(new[name]["value"] - old[name]["value"]), name
        assert changes[name]["low"] <= changes[name]["value"] <= changes[name]["high"]
    assert "sr" not in changes


def test_paired_differences_without_episodes():
    empty = {"value": None, "low": None, "high": None, "count": 0}
    assert all(change == empty for change in paired_differences(task_counts([]), task_counts([])).values())


def test_interval_of_hu_is_close_to_wilson_when_episodes_have_one_turn():
    """With one turn per episode and a single varying component both intervals estimate the same error."""
    episodes = [episode("absent" if i % 4 else "", task=f"t{i}") for i in range(200)]
    hu, available = (evaluate_metrics(episodes)[name] for name in ("hu", "hu_available"))
    assert available == wilson(50, 200).as_dict()
    assert hu["value"] == pytest.approx((0.25 + 1.0) / 2)
    assert hu["high"] - hu["low"] == pytest.approx((available["high"] - available["low"]) / 2, rel=0.1)
