import pytest
from episode_maker import record

from had.metrics.counts import Share, as_vector
from had.metrics.disagreement import count_disagreement, disagreement_estimates, position_bin
from had.metrics.intervals import wilson

RECORDS = [
    record(0.0, "look", "look"),
    record(0.05, "look", "help"),
    record(0.1, "look", "help"),
    record(0.99, "look", "look"),
    record(0.5, None, "look"),
    record(0.5, "look", None),
    record(0.5, None, None),
    record(0.5, "look", "look", is_asked=False),
]


def test_counts():
    counts = count_disagreement(RECORDS)
    assert counts.bins[0] == Share(1, 2)
    assert counts.bins[1] == Share(1, 1)
    assert counts.bins[9] == Share(0, 1)
    assert sum((b.total for b in counts.bins), 0) == 4
    assert (counts.num_unparsable, counts.num_unlabeled) == (3, 1)


def test_estimates():
    estimates = disagreement_estimates(as_vector(count_disagreement(RECORDS)))
    assert estimates["disagreement"] == wilson(2, 4)
    assert estimates["disagreement_0"] == wilson(1, 2)
    assert estimates["disagreement_5"].value is None
    assert (estimates["num_unparsable"].value, estimates["num_unparsable"].count) == (3, 8)
    assert estimates["num_unlabeled"].value == 1


def test_no_record():
    for estimate in disagreement_estimates(as_vector(count_disagreement([]))).values():
        assert (estimate.value, estimate.count) == (None, 0)


@pytest.mark.parametrize("num_turns", [1, 7, 10, 15, 20, 30])
def test_bins_follow_exact_fractions(num_turns):
    for index in range(num_turns):
        assert position_bin(index / num_turns) == 10 * index // num_turns
