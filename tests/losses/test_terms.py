"""Each term against plain Python, against finite differences, and without units."""

import math

import pytest
import torch
from spans_by_hand import span_set

from had.losses.action_preference import ActionPreference
from had.losses.forward_kl import ForwardKL
from had.losses.jsd import JSD
from had.losses.positive_action import PositiveAction
from had.losses.response_nll import ResponseNLL
from had.losses.reverse_kl import ReverseKL
from had.losses.token_nll import TokenNLL

NUM_WORDS, TOP_K = 7, 3
RUNS = [[1, 2, 3], [4], [0, 6]]
OTHER_RUNS = [[2, 2], [5, 1, 0, 3], [6]]
WEIGHTS = [1.0, 0.5, 0.0]


def draw(num_tokens: int, seed: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(num_tokens, NUM_WORDS, dtype=torch.float64, generator=generator)


def top_k_of(logits: torch.Tensor) -> dict[str, torch.Tensor]:
    values, ids = logits.log_softmax(-1).topk(TOP_K)
    return {"topk_ids": ids, "topk_logprobs": values}


SPANS = {
    "response": span_set(RUNS),
    "acted": span_set(RUNS, WEIGHTS),
    "own": span_set(RUNS, WEIGHTS, **top_k_of(draw(6, seed=9))),
    "preferred": span_set(RUNS, reference_logprob=torch.tensor([-1.0, -2.0, -3.0], dtype=torch.float64)),
    "dispreferred": span_set(
        OTHER_RUNS, reference_logprob=torch.tensor([-2.0, -2.0, -0.5], dtype=torch.float64)
    ),
}
LOGITS = {
    role: draw(spans.num_tokens, seed) for seed, (role, spans) in enumerate(sorted(SPANS.items()), start=1)
}
TERMS = {
    "response": ResponseNLL(),
    "preference": ActionPreference(),
    "reference": ActionPreference(reference="reference_logprob"),
    "positive": PositiveAction(),
    "acted_tokens": TokenNLL(),
    "acted_records": TokenNLL("record"),
    "reverse_tokens": ReverseKL(),
    "reverse_records": ReverseKL("record"),
    "forward_tokens": ForwardKL(),
    "forward_records": ForwardKL("record"),
    "jsd_tokens": JSD(0.3),
    "jsd_records": JSD(0.3, "record"),
}


def log_probs(row: list[float], ids: list[int]) -> list[float]:
    """Log of the probabilities renormalised on `ids`."""
    total = math.log(sum(math.exp(row[i]) for i in ids))
    return [row[i] - total for i in ids]


def per_span(role: str, value_of_token) -> list[list[float]]:
    """value_of_token(position in the role, target) for every token of every span."""
    spans, values, position = SPANS[role], [], 0
    for length in spans.lengths_S.tolist():
        targets = spans.targets_N[position : position + length].tolist()
        values.append([value_of_token(position + j, target) for j, target in enumerate(targets)])
        position += length
    return values


def nll(role: str) -> list[list[float]]:
    rows = LOGITS[role].tolist()
    return per_span(role, lambda n, target: -log_probs(rows[n], list(range(NUM_WORDS)))[target])


def kl(p: list[float], q: list[float]) -> float:
    return sum(math.exp(a) * (a - b) for a, b in zip(p, q, strict=True))


def divergence(kind: str) -> list[list[float]]:
    rows, extra = LOGITS["own"].tolist(), SPANS["own"].extra

    def value(n: int, _: int) -> float:
        q = log_probs(rows[n], extra["topk_ids"][n].tolist())
        p = log_probs(extra["topk_logprobs"][n].tolist(), list(range(TOP_K)))
        if kind == "reverse":
            return kl(q, p)
        if kind == "forward":
            return kl(p, q)
        mixture = [math.log(0.3 * math.exp(a) + 0.7 * math.exp(b)) for a, b in zip(p, q, strict=True)]
        return 0.3 * kl(p, mixture) + 0.7 * kl(q, mixture)

    return per_span("own", value)


def mean(values: list[float]) -> float:
    return sum(values) / len(values)


def preference(with_reference: bool) -> float:
    total = 0.0
    for index, (good, bad) in enumerate(zip(nll("preferred"), nll("dispreferred"), strict=True)):
        delta = -mean(good) + mean(bad)
        if with_reference:
            delta -= SPANS["preferred"].extra["reference_logprob"][index].item() / len(good)
            delta += SPANS["dispreferred"].extra["reference_logprob"][index].item() / len(bad)
        total += math.log(1 + math.exp(-0.5 * delta))
    return total


def weighted(values: list[list[float]], inside) -> float:
    return sum(weight * inside(run) for weight, run in zip(WEIGHTS, values, strict=True))


EXPECTED = {
    "response": lambda: sum(mean(run) for run in nll("response")),
    "preference": lambda: preference(with_reference=False),
    "reference": lambda: preference(with_reference=True),
    "positive": lambda: sum(mean(run) for run in nll("preferred")),
    "acted_tokens": lambda: weighted(nll("acted"), sum),
    "acted_records": lambda: weighted(nll("acted"), mean),
    "reverse_tokens": lambda: weighted(divergence("reverse"), sum),
    "reverse_records": lambda: weighted(divergence("reverse"), mean),
    "forward_tokens": lambda: weighted(divergence("forward"), sum),
    "forward_records": lambda: weighted(divergence("forward"), mean),
    "jsd_tokens": lambda: weighted(divergence("jsd"), sum),
    "jsd_records": lambda: weighted(divergence("jsd"), mean),
}


@pytest.mark.parametrize("name", TERMS)
def test_sum_equals_plain_python(name):
    assert TERMS[name](SPANS, LOGITS).item() == pytest.approx(EXPECTED[name](), rel=1e-12)


@pytest.mark.parametrize("name", TERMS)
def test_gradient_equals_finite_differences(name):
    roles = TERMS[name].roles
    inputs = [LOGITS[role].clone().requires_grad_() for role in roles]
    assert torch.autograd.gradcheck(
        lambda *rows: TERMS[name](SPANS, dict(zip(roles, rows, strict=True))), inputs
    )


@pytest.mark.parametrize("name", TERMS)
def test_without_units_the_value_is_zero_with_a_gradient_path(name):
    logits = {"other": draw(2, seed=0).requires_grad_()}
    value = TERMS[name]({"other": span_set([[1, 2]])}, logits)
    assert value.item() == 0.0
    value.backward()
    assert logits["other"].grad.abs().max() == 0.0


def test_count_names():
    assert {name: term.count_name for name, term in TERMS.items()} == {
        "response": "records",
        "preference": "accepted",
        "reference": "accepted",
        "positive": "accepted",
        "acted_tokens": "weighted_tokens_acted",
        "acted_records": "weighted_spans_acted",
        "reverse_tokens": "weighted_tokens_own",
        "reverse_records": "weighted_spans_own",
        "forward_tokens": "weighted_tokens_own",
        "forward_records": "weighted_spans_own",
        "jsd_tokens": "weighted_tokens_own",
        "jsd_records": "weighted_spans_own",
    }
    assert ReverseKL(count_name="tokens_scored").count_name == "tokens_scored"


def test_equal_actions_are_worth_log_2_each():
    counts = {"accepted": 5.0, "differing": 2.0}
    assert ActionPreference().skipped_sum(counts) == pytest.approx(3 * math.log(2))
    # and that is what a forward pass would have given, without gradient
    logits = draw(2, seed=3).requires_grad_()
    both = {"preferred": span_set([[1, 2]]), "dispreferred": span_set([[1, 2]])}
    value = ActionPreference()(both, {"preferred": logits, "dispreferred": logits})
    assert value.item() == pytest.approx(math.log(2), rel=1e-12)
    value.backward()
    assert logits.grad.abs().max() == 0.0


def test_student_as_its_own_teacher_has_no_divergence():
    logits = draw(6, seed=9)
    for term in (ReverseKL(), ForwardKL(), JSD()):
        rows = logits.clone().requires_grad_()
        value = term(SPANS, {"own": rows})
        value.backward()
        assert abs(value.item()) < 1e-12 and rows.grad.abs().max() < 1e-12


def test_divergences_never_go_negative_where_the_student_ignores_the_teachers_tokens():
    logits = draw(6, seed=4)
    logits.scatter_(1, SPANS["own"].extra["topk_ids"], -60.0)
    for term in (ReverseKL(), ForwardKL(), JSD()):
        rows = logits.clone().requires_grad_()
        value = term(SPANS, {"own": rows})
        value.backward()
        assert value.item() >= 0 and torch.isfinite(rows.grad).all()


def test_generalised_jsd_tends_to_the_two_kls():
    near_zero, near_one = JSD(1e-7)(SPANS, LOGITS) / 1e-7, JSD(1 - 1e-7)(SPANS, LOGITS) / 1e-7
    assert near_zero.item() == pytest.approx(ForwardKL()(SPANS, LOGITS).item(), rel=1e-4)
    assert near_one.item() == pytest.approx(ReverseKL()(SPANS, LOGITS).item(), rel=1e-4)


def test_errors_teach():
    with pytest.raises(ValueError, match="beta: expected > 0"):
        ActionPreference(beta=0)
    with pytest.raises(ValueError, match="ForwardKL or ReverseKL"):
        JSD(beta=1)
    with pytest.raises(ValueError, match="'token' or 'record'"):
        ReverseKL("sequence")
    with pytest.raises(ValueError, match="OwnResponseLayout"):
        ReverseKL()({"own": SPANS["response"]}, {"own": LOGITS["response"]})
    plain = {"preferred": span_set(RUNS), "dispreferred": span_set(RUNS)}
    with pytest.raises(ValueError, match="ReferenceLayout"):
        ActionPreference(reference="reference_logprob")(
            plain, {role: LOGITS["response"] for role in ("preferred", "dispreferred")}
        )
