import math

import pytest

from had.metrics.intervals import Estimate, across_seeds, difference, mean_of, student_quantile, wilson


@pytest.mark.parametrize(
    ("hits", "total", "low", "high"),
    [
        # Newcombe 1998, "Two-sided confidence intervals for the single proportion", Table I, method 3
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
        (5, 10, 0.2366, 0.7634),
        (20, 20, 0.8389, 1.0),
    ],
)
def test_wilson_known_values(hits, total, low, high):
    estimate = wilson(hits, total)
    assert (estimate.low, estimate.high) == pytest.approx((low, high), abs=5e-5)
    assert (estimate.value, estimate.count) == (hits / total, total)


@pytest.mark.parametrize(("hits", "total"), [(1, 3), (7, 9), (50, 274)])
def test_wilson_limits_are_where_the_score_test_turns(hits, total):
    estimate = wilson(hits, total)
    for limit in (estimate.low, estimate.high):
        score = abs(hits / total - limit) / math.sqrt(limit * (1 - limit) / total)
        assert score == pytest.approx(1.959964, abs=1e-5)


def test_wilson_without_cases():
    assert wilson(0, 0) == Estimate(None, None, None, 0)


def test_difference_known_value():
    """Newcombe 1998, "Interval estimation for the difference between independent proportions", method 10."""
    change = difference(before=wilson(48, 80), after=wilson(56, 70))
    assert (change.value, change.low, change.high) == pytest.approx((0.2, 0.0524, 0.3339), abs=5e-5)
    assert change.count == 70


def test_difference_with_a_missing_side():
    assert difference(Estimate(), wilson(1, 2)) == Estimate()
    assert difference(Estimate(3.0, count=4), Estimate(5.0, count=2)) == Estimate(2.0, count=2)


def test_mean_of_splits():
    one, two = wilson(10, 40), wilson(30, 60)
    mean = mean_of([one, two])
    assert mean.value == pytest.approx(0.375)
    assert mean.count == 100
    assert mean.low == pytest.approx(0.375 - math.hypot(0.25 - one.low, 0.5 - two.low) / 2)
    assert mean.high == pytest.approx(0.375 + math.hypot(one.high - 0.25, two.high - 0.5) / 2)
    assert mean_of([one]).low == pytest.approx(one.low)
    assert mean_of([]) == mean_of([one, Estimate()]) == Estimate()
    assert mean_of([Estimate(1.0, count=1), one]).low is None


@pytest.mark.parametrize(
    ("freedom", "quantile"), [(1, 12.7062), (2, 4.30265), (3, 3.18245), (9, 2.26216), (30, 2.04227)]
)
def test_student_quantiles(freedom, quantile):
    assert student_quantile(0.975, freedom) == pytest.approx(quantile, rel=1e-5)


def test_across_seeds():
    estimate = across_seeds([0.5, 0.6, 0.7])
    half = 4.30265 * 0.1 / math.sqrt(3)
    assert (estimate.value, estimate.low, estimate.high) == pytest.approx(
        (0.6, 0.6 - half, 0.6 + half), abs=1e-5
    )
    assert estimate.count == 3
    assert across_seeds([0.5]) == Estimate(0.5, None, None, 1)
    assert across_seeds([]) == Estimate()
