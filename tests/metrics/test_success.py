import pytest
from episode_maker import episode

from had.metrics.functional import aggregate_metrics, evaluate_metrics
from had.metrics.intervals import wilson
from had.metrics.success import SuccessCounts, count_success

EPISODES = [
    episode("", "", "", status="won", task="a", score=100.0, reward=1.0),
    episode("", status="won", task="b", score=100.0, reward=1.0),
    episode("", "", status="out", task="c", score=-100.0, reward=0.5),
    episode("", status="lost", task="d"),
    episode("", status="env", task="e"),
    episode(status="engine", task="f"),
]


def test_counts():
    expected = SuccessCounts(num_episodes=6, num_won=2, num_failed=2, score=100.0, reward=2.5, turns_won=4)
    assert count_success(EPISODES) == expected


def test_failed_episodes_count_as_not_won_and_are_reported():
    metrics = evaluate_metrics(EPISODES)
    assert metrics["sr"] == wilson(2, 6).as_dict()
    assert metrics["score"]["value"] == pytest.approx(100 / 6)
    assert metrics["reward"]["value"] == pytest.approx(2.5 / 6)
    assert metrics["turns_success"]["value"] == 2.0
    assert metrics["turns_success"]["count"] == 2
    assert metrics["num_failed"] == {"value": 2, "low": None, "high": None, "count": 6}
    assert metrics["score"]["low"] < 100 / 6 < metrics["score"]["high"]


def test_no_episode_gives_empty_estimates():
    metrics = evaluate_metrics([])
    assert set(metrics) >= {"sr", "score", "turns_success", "hu", "hu_stall", "prevention", "recovery"}
    for name, estimate in metrics.items():
        assert estimate == {"value": None, "low": None, "high": None, "count": 0}, name


def test_no_success_has_no_turns():
    metrics = evaluate_metrics([episode("", status="lost")])
    assert metrics["turns_success"] == {"value": None, "low": None, "high": None, "count": 0}
    assert metrics["sr"]["value"] == 0.0


def test_aggregate_names_both_ways_of_joining_success_rates():
    """The paper's ALFWorld numbers: 85/134 unseen and 72/140 seen give 57.43 (mean) and 57.30 (pooled)."""
    splits = {
        "valid_unseen": [episode("", status="won" if i < 85 else "out", task=f"u{i}") for i in range(134)],
        "valid_seen": [episode("", status="won" if i < 72 else "out", task=f"s{i}") for i in range(140)],
    }
    metrics = aggregate_metrics(splits)
    assert "sr" not in metrics
    assert round(100 * metrics["sr_mean_of_splits"]["value"], 2) == 57.43
    assert round(100 * metrics["sr_pooled"]["value"], 2) == 57.30
    assert metrics["sr_mean_of_splits"]["count"] == metrics["sr_pooled"]["count"] == 274
    for side in ("low", "high"):
        assert metrics["sr_mean_of_splits"][side] == pytest.approx(metrics["sr_pooled"][side], abs=0.005)


def test_aggregate_with_an_empty_split_has_no_mean_of_splits():
    metrics = aggregate_metrics({"seen": [episode("", status="won")], "unseen": []})
    assert metrics["sr_mean_of_splits"]["value"] is None
    assert metrics["sr_pooled"]["value"] == 1.0
