import re

import pytest
from episode_maker import episode, random_episodes

from had.metrics.counts import Share
from had.metrics.functional import evaluate_metrics
from had.metrics.intervals import wilson
from had.metrics.stall import StallCounts, count_stalls, stalled_runs


def test_runs_are_maximal():
    assert stalled_runs([]) == []
    assert stalled_runs([False]) == []
    assert stalled_runs([True, True, False, True]) == [(0, 1), (3, 3)]


@pytest.mark.parametrize(
    ("turns", "status", "prevention", "recovery"),
    [
        ([], "out", (1, 1), (0, 0)),
        (["new", ""], "out", (1, 1), (0, 0)),
        (["", "stalled", "stalled new", ""], "out", (0, 1), (1, 1)),  # ends because a new state came
        (["stalled", "stalled"], "out", (0, 1), (0, 1)),
        (["stalled", "", "new"], "out", (0, 1), (1, 1)),
        (["new", "stalled"], "out", (0, 1), (0, 1)),
        (["stalled", "stalled"], "won", (0, 1), (1, 1)),
        (["stalled new", "", "stalled", "stalled"], "out", (0, 1), (1, 2)),
        (["stalled new", "", "stalled", "stalled"], "won", (0, 1), (2, 2)),
        (["", ""], "env", (0, 1), (0, 0)),  # what would have followed is not known
        (["stalled"], "engine", (0, 1), (0, 1)),
    ],
)
def test_cases(turns, status, prevention, recovery):
    counts = count_stalls([episode(*turns, status=status)])
    assert counts == StallCounts(Share(*prevention), Share(*recovery))


def test_intervals_are_wilson_s():
    metrics = evaluate_metrics(
        [episode("", task="a"), episode("stalled", task="b"), episode("stalled new", task="c")]
    )
    assert metrics["prevention"] == wilson(1, 3).as_dict()
    assert metrics["recovery"] == wilson(1, 2).as_dict()


@pytest.mark.parametrize("seed", range(5))
def test_equals_a_slow_recount_on_random_episodes(seed):
    """One letter per turn: S stalled, s stalled and new, n new, '-' otherwise."""
    episodes = random_episodes(seed, 80)
    prevented = runs = recovered = 0
    for played in episodes:
        letters = {(True, True): "s", (True, False): "S", (False, True): "n", (False, False): "-"}
        text = "".join(letters[t.report.is_stalled, t.is_new_state] for t in played.turns)
        prevented += not re.search("[sS]", text) and not played.is_failed
        for run in re.finditer("[sS]+", text):
            runs += 1
            recovered += played.is_won or bool(re.search("[sn]", text[run.end() - 1 :]))
    counts = count_stalls(episodes)
    assert counts == StallCounts(Share(prevented, len(episodes)), Share(recovered, runs))
