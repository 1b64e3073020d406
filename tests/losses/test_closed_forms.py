"""The optima that the paper derives, found by optimising a softmax table with the production terms.

One context, a few actions. An action is a run of tokens: its first token names it, the others follow with
probability 1: only the first token's distribution q is learnt, while the length enters the normalisation.
"""

import math
from fractions import Fraction

import pytest
import torch
from spans_by_hand import span_set

from had.losses.action_preference import ActionPreference
from had.losses.positive_action import PositiveAction
from had.losses.reverse_kl import ReverseKL
from had.losses.term import Term

BETA = 0.5
F = Fraction
UNIFORM = (F(1, 2), F(1, 2))


class Table:
    """A softmax over the actions, and the spans of every possible (a⁺, a⁻) as often as they are drawn."""

    def __init__(self, lengths: tuple[int, ...], valid: tuple[bool, ...] | None = None) -> None:
        """A rejected action starts at the optimum, probability 0, where its gradient vanishes."""
        self.lengths = lengths
        start = [0.0 if ok else -100.0 for ok in valid or [True] * len(lengths)]
        self.logits = torch.tensor(start, dtype=torch.float64, requires_grad=True)

    def spans(self, actions: list[int], weights: list[float], reference: list[float] | None = None):
        runs = [[action] * self.lengths[action] for action in actions]
        extra = {}
        if reference is not None:
            extra["reference_logprob"] = torch.tensor(
                [math.log(reference[action]) for action in actions], dtype=torch.float64
            )
        return span_set(runs, weights, **extra)

    def rows(self, actions: list[int]) -> torch.Tensor:
        """[N, V] logits: the table at a first token, certainty at the following ones."""
        sure = torch.full((len(self.lengths), len(self.lengths)), -1e4, dtype=torch.float64)
        sure.fill_diagonal_(0.0)
        rows = [
            self.logits if j == 0 else sure[action]
            for action in actions
            for j in range(self.lengths[action])
        ]
        return torch.stack(rows)

    def minimise(self, term: Term, sides: dict[str, list[int]], weights: list[float], reference=None):
        spans = {role: self.spans(actions, weights, reference) for role, actions in sides.items()}
        optimizer = torch.optim.LBFGS(
            [self.logits], max_iter=500, tolerance_grad=1e-13, tolerance_change=1e-16,
            line_search_fn="strong_wolfe",
        )  # fmt: skip

        def closure():
            optimizer.zero_grad()
            loss = term(spans, {role: self.rows(actions) for role, actions in sides.items()})
            loss.backward()
            return loss

        optimizer.step(closure)
        assert self.logits.grad.abs().max() < 1e-9
        return self.logits.detach().softmax(-1)


def fit_pairs(positive, negative, lengths, valid=None, reference=None):
    """q* of the preference: a⁺ ~ P₊ and a⁻ ~ P₋ independently; rejected positives form no pair."""
    actions = range(len(lengths))
    pairs = [
        (i, j) for i in actions for j in actions if positive[i] * negative[j] > 0 and (not valid or valid[i])
    ]
    weights = [float(positive[i] * negative[j]) for i, j in pairs]
    weights = [weight / sum(weights) for weight in weights]
    sides = {"preferred": [i for i, _ in pairs], "dispreferred": [j for _, j in pairs]}
    term = ActionPreference(BETA, reference="reference_logprob" if reference else None)
    return Table(lengths, valid).minimise(term, sides, weights, reference)


def normalised(values) -> list[float]:
    total = sum(values)
    return [float(value / total) for value in values]


@pytest.mark.parametrize(
    ("negative", "difference"), [((F(3, 4), F(1, 4)), -math.log(3)), ((F(1, 4), F(3, 4)), math.log(3))]
)
@pytest.mark.parametrize("length", [1, 3])
def test_isolated_preference_learns_the_ratio_of_the_two_views(negative, difference, length):
    q = fit_pairs(UNIFORM, negative, (length, length))
    score = BETA * q.log() / length
    assert (score[0] - score[1]).item() == pytest.approx(difference, abs=1e-6)
    ratios = [(float(p / n)) ** (length / BETA) for p, n in zip(UNIFORM, negative, strict=True)]
    assert q.tolist() == pytest.approx(normalised(ratios), abs=1e-6)


def test_equal_views_leave_no_preference():
    q = fit_pairs((F(9, 10), F(1, 10)), (F(9, 10), F(1, 10)), (1, 1))
    assert q.tolist() == pytest.approx([0.5, 0.5], abs=1e-8)


def test_three_actions():
    positive, negative = (F(1, 2), F(3, 10), F(1, 5)), (F(1, 5), F(2, 5), F(2, 5))
    q = fit_pairs(positive, negative, (2, 2, 2))
    ratios = [float(p / n) ** (2 / BETA) for p, n in zip(positive, negative, strict=True)]
    assert q.tolist() == pytest.approx(normalised(ratios), abs=1e-6)


def test_unequal_lengths_scale_the_optimal_score():
    positive, negative, lengths = (F(1, 2), F(3, 10), F(1, 5)), (F(1, 3), F(1, 3), F(1, 3)), (1, 2, 4)
    q = fit_pairs(positive, negative, lengths)
    g = [math.log(p / n) / BETA for p, n in zip(positive, negative, strict=True)]
    low, high = -50.0, 50.0  # κ is fixed by Σ q = 1, which grows with κ
    for _ in range(200):
        kappa = (low + high) / 2
        total = sum(math.exp(length * (score + kappa)) for length, score in zip(lengths, g, strict=True))
        low, high = (kappa, high) if total < 1 else (low, kappa)
    expected = [math.exp(length * (score + kappa)) for length, score in zip(lengths, g, strict=True)]
    assert q.tolist() == pytest.approx(expected, abs=1e-6)


def test_filter_conditions_the_positive_only():
    positive, negative = (F(1, 2), F(3, 10), F(1, 5)), (F(1, 5), F(2, 5), F(2, 5))
    q = fit_pairs(positive, negative, (1, 1, 1), valid=(True, True, False))
    # P₊ given validity is (5/8, 3/8, 0); P₋ keeps the rejected action
    ratios = [float(p / n) ** (1 / BETA) for p, n in zip((F(5, 8), F(3, 8)), negative[:2], strict=True)]
    assert q.tolist() == pytest.approx([*normalised(ratios), 0.0], abs=1e-6)


def test_a_pair_with_a_rejected_action_only_ever_lowers_it():
    table = Table((1, 1, 1))
    sides = {"preferred": [0, 1], "dispreferred": [2, 2]}
    spans = {role: table.spans(actions, [0.5, 0.5]) for role, actions in sides.items()}
    ActionPreference(BETA)(spans, {role: table.rows(actions) for role, actions in sides.items()}).backward()
    assert table.logits.grad[2] > 0 and (table.logits.grad[:2] < 0).all()


def test_positive_only_learns_valid_positives_over_their_length():
    positive, valid, lengths = (F(1, 2), F(3, 10), F(1, 5)), (True, True, False), (1, 3, 2)
    actions = [a for a in range(3) if valid[a]]
    weights = [float(positive[a]) for a in actions]
    q = Table(lengths, valid).minimise(PositiveAction(), {"preferred": actions}, weights)
    expected = normalised([float(valid[a] * positive[a] / lengths[a]) for a in range(3)])
    assert q.tolist() == pytest.approx(expected, abs=1e-6)


def test_with_equal_views_the_reference_is_optimal():
    views, reference = (F(7, 10), F(1, 5), F(1, 10)), [0.2, 0.5, 0.3]
    q = fit_pairs(views, views, (2, 2, 2), reference=reference)
    assert q.tolist() == pytest.approx(reference, abs=1e-6)


@pytest.mark.parametrize(("top_k", "expected"), [(1, 0.0), (2, 0.005238), (3, 0.097385), (4, 0.171948)])
def test_renormalised_reverse_kl(top_k, expected):
    student = torch.tensor([[0.5, 0.2, 0.2, 0.1]]).log()
    teacher = torch.tensor([[0.6, 0.3, 0.08, 0.02]]).log()
    values, ids = teacher.topk(top_k)
    spans = {"own": span_set([[0]], topk_ids=ids, topk_logprobs=values)}
    assert ReverseKL()(spans, {"own": student}).item() == pytest.approx(expected, abs=1e-6)


def test_whole_response_contrast_learns_what_the_action_contrast_cannot():
    """Both views choose actions alike but reason differently: only whole responses can be told apart."""
    log_2 = math.log(2)
    actions = fit_pairs(UNIFORM, UNIFORM, (1, 1))
    assert actions.tolist() == pytest.approx([0.5, 0.5], abs=1e-8)
    # responses (z1,a1), (z1,a2), (z2,a1), (z2,a2) as four "actions" of two tokens
    positive, negative = (F(2, 5), F(2, 5), F(1, 10), F(1, 10)), (F(1, 10), F(1, 10), F(2, 5), F(2, 5))
    q = fit_pairs(positive, negative, (2, 2, 2, 2))
    scores = (q.log() / 2).tolist()
    loss = sum(
        float(positive[i] * negative[j]) * math.log(1 + math.exp(-BETA * (scores[i] - scores[j])))
        for i in range(4)
        for j in range(4)
    )
    assert loss < log_2 - 0.1
