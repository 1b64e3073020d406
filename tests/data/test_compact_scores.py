"""Top-k scores in six bytes an entry: what the 16-bit log-probabilities cost."""

from __future__ import annotations

import json

import pytest
import torch
from labelled_records import make_record, reply
from spans_of_scores import spans_of

from had.data.record_io import record_from_dict, record_to_dict
from had.losses.forward_kl import ForwardKL
from had.losses.jsd import JSD
from had.losses.reverse_kl import ReverseKL
from had.records import CompactScores, TopKScores

NUM_TOKENS, NUM_WORDS, TOP_K = 400, 5000, 64
SHARPNESS = (0.5, 2.0, 6.0)  # of the teacher's logits: from nearly uniform to nearly certain


def teacher_scores(sharpness: float) -> TopKScores:
    generator = torch.Generator().manual_seed(0)
    logits = sharpness * torch.randn(NUM_TOKENS, NUM_WORDS, generator=generator, dtype=torch.float64)
    best = logits.log_softmax(-1).topk(TOP_K)
    return TopKScores(tuple(map(tuple, best.indices.tolist())), tuple(map(tuple, best.values.tolist())))


@pytest.mark.parametrize("sharpness", SHARPNESS)
def test_rounding_is_at_most_one_in_2048(sharpness):
    exact = teacher_scores(sharpness)
    compact = CompactScores.of(exact)
    assert compact.num_tokens == NUM_TOKENS and compact.unpack().ids == exact.ids
    assert len(compact.ids) + len(compact.logprobs) == 6 * NUM_TOKENS * TOP_K
    rounded, true = torch.tensor(compact.unpack().logprobs), torch.tensor(exact.logprobs)
    assert ((rounded - true).abs() <= true.abs() / 2048 + 1e-7).all()


@pytest.mark.parametrize("sharpness", SHARPNESS)
@pytest.mark.parametrize("term", [ReverseKL(), ForwardKL(), JSD()], ids=lambda term: term.name)
def test_divergences_change_by_less_than_a_thousandth(sharpness, term):
    """Measured: at most 1.5e-5 of the value and 7e-4 of the gradient."""
    exact = teacher_scores(sharpness)
    generator = torch.Generator().manual_seed(1)
    student = 2 * torch.randn(NUM_TOKENS, NUM_WORDS, generator=generator, dtype=torch.float64)
    results = []
    for scores in (exact, CompactScores.of(exact).unpack()):
        logits = student.clone().requires_grad_()
        value = term({"own": spans_of(scores)}, {"own": logits})
        value.backward()
        results.append((value.item(), logits.grad))
    (value, gradient), (rounded, rounded_gradient) = results
    assert rounded == pytest.approx(value, rel=1e-3)
    assert (rounded_gradient - gradient).norm() < 1e-3 * gradient.norm()


@pytest.mark.parametrize("sharpness", SHARPNESS)
def test_a_student_equal_to_its_teacher_stays_at_zero(sharpness):
    exact = teacher_scores(sharpness)
    logits = torch.full((NUM_TOKENS, NUM_WORDS), -40.0, dtype=torch.float64)
    logits.scatter_(1, torch.tensor(exact.ids), torch.tensor(exact.logprobs, dtype=torch.float64))
    value = ReverseKL()({"own": spans_of(CompactScores.of(exact).unpack())}, {"own": logits})
    assert 0 <= value.item() / NUM_TOKENS < 2e-6


def test_records_with_scores_survive_json():
    student = reply((4,), (5, 6))
    rows = ((1, 2), (3, 4), (5, 6), (7, 8))
    scores = CompactScores.of(TopKScores(rows, ((-0.5, -2.0),) * 4))
    record = make_record(student=student, scores=scores)
    assert record_from_dict(json.loads(json.dumps(record_to_dict(record)))) == record


def test_no_tokens():
    empty = CompactScores.of(TopKScores((), ()))
    assert empty.num_tokens == 0 and empty.unpack() == TopKScores((), ())
