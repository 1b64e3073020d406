import pytest
from episode_maker import REPORTED, episode, random_episodes, turn

from had.metrics.counts import Share
from had.metrics.functional import evaluate_metrics
from had.metrics.harness_utilization import UtilizationCounts, count_utilization
from had.metrics.intervals import wilson


def counts_of(*turns, status="out"):
    return count_utilization([episode(*turns, status=status)])


def test_available_counts_every_turn():
    counts = counts_of("", "absent", "ungrammatical", "unparsed")
    assert counts.available == Share(1, 4)


def test_a_command_outside_the_grammar_counts_in_available_only():
    counts = counts_of("ungrammatical misused urged idle failures stalled", "unparsed urged failures stalled")
    assert counts == UtilizationCounts(available=Share(0, 2))


def test_situation():
    assert counts_of("", "misused", "absent misused", "absent").situation == Share(2, 4)


def test_budget_applies_while_the_urge_is_on():
    assert counts_of("idle", "urged", "urged idle", "").budget == Share(1, 2)


def test_failure_applies_while_failures_are_reported():
    repeated, other = turn("failures", REPORTED), turn("failures", "look")
    assert counts_of(repeated, other, turn("", REPORTED)).failure == Share(1, 2)


@pytest.mark.parametrize(
    ("turns", "status", "expected"),
    [
        (["stalled new"], "out", (1, 1)),  # the stalled turn's own command is the first of the five
        (["stalled", "", "", "", "new"], "out", (1, 1)),  # the fifth
        (["stalled", "", "", "", "", "new"], "out", (0, 1)),  # the sixth is too late
        (["stalled", "", "ungrammatical new"], "out", (1, 1)),  # later turns need no grammar
        (["new", "stalled", ""], "out", (0, 1)),  # what came before does not count
        (["stalled"], "won", (1, 1)),
        (["stalled", "", "", "", ""], "won", (1, 1)),
        (["stalled", "", "", "", "", ""], "won", (0, 1)),  # success comes too late
        (["stalled", ""], "out", (0, 1)),  # cut short by the end of the episode: still applicable
        (["stalled", ""], "env", (0, 1)),
        (["unparsed stalled", "new"], "out", (0, 0)),  # not in the grammar
        (["stalled", "stalled", "stalled new", ""], "out", (3, 3)),
    ],
)
def test_stall(turns, status, expected):
    assert counts_of(*turns, status=status).stall == Share(*expected)


def test_hu_is_the_unweighted_mean_of_the_applicable_components():
    metrics = evaluate_metrics([episode("", "", "", "absent urged", "urged idle", task="a")])
    assert metrics["hu_available"] == wilson(4, 5).as_dict()
    assert metrics["hu_situation"]["value"] == 1.0
    assert metrics["hu_budget"] == wilson(1, 2).as_dict()
    for name in ("hu_failure", "hu_stall"):
        assert metrics[name] == {"value": None, "low": None, "high": None, "count": 0}
    assert metrics["hu"]["value"] == pytest.approx((0.8 + 1.0 + 0.5) / 3)
    assert metrics["hu"]["count"] == 5


def test_the_paper_s_components_give_its_hu():
    """Table 11 of the paper: components of HAD and of the student, and their HU."""
    for components, hu in (((93.3, 99.0, 87.7, 91.1, 33.8), 81.0), ((73.7, 96.2, 79.1, 61.2, 18.1), 65.7)):
        assert sum(components) / 5 == pytest.approx(hu, abs=0.05)


def test_interval_of_hu_covers_the_value():
    hu = evaluate_metrics(random_episodes(1, 60))["hu"]
    assert 0 < hu["low"] < hu["value"] < hu["high"] < 1


def recount(episodes):
    """Component by component, turn by turn, straight from the definition."""
    table = {}
    for component in ("available", "situation", "budget", "failure", "stall"):
        hits = total = 0
        for played in episodes:
            for number, t in enumerate(played.turns):
                proper = t.is_in_grammar and t.response.action is not None
                if component == "available":
                    applies, obeys = True, t.is_available
                elif component == "situation":
                    applies, obeys = proper, not t.is_misused
                elif component == "budget":
                    applies, obeys = proper and t.report.is_urged, not t.is_idle
                elif component == "failure":
                    applies = proper and len(t.report.failures) > 0
                    obeys = all(t.response.action != failed for failed in t.report.failures)
                else:
                    applies, obeys = proper and t.report.is_stalled, False
                    for step in range(5):
                        if number + step < len(played.turns):
                            obeys |= played.turns[number + step].is_new_state
                            is_last = number + step == len(played.turns) - 1
                            obeys |= is_last and played.is_won
                total += applies
                hits += applies and obeys
        table[component] = Share(hits, total)
    return UtilizationCounts(**table)


@pytest.mark.parametrize("seed", range(5))
def test_equals_a_slow_recount_on_random_episodes(seed):
    episodes = random_episodes(seed, 80)
    assert count_utilization(episodes) == recount(episodes)
