import math

import pytest
import torch

from had.losses.balance import GradientNormBalance, WeightedSum
from had.losses.gradients import add_scaled, global_norm


def two(response, preference):
    def as_gradient(values):
        return [None if value is None else torch.tensor(value) for value in values]

    return {"response": as_gradient(response), "preference": as_gradient(preference)}


def test_auxiliary_gradient_gets_rho_times_the_norm_of_the_main_one():
    gradients = two([[3.0, 0.0], [4.0]], [[0.0, 0.5], [0.0]])
    combined, metrics = GradientNormBalance(rho=0.5).combine(gradients)
    assert metrics == {"grad_norm_response": 5.0, "grad_norm_preference": 0.5, "balance": 5.0}
    assert [g.tolist() for g in combined] == [[3.0, 2.5], [4.0]]


@pytest.mark.parametrize("nothing", [[[0.0, 0.0], [0.0]], [None, None]])
def test_balance_is_zero_without_an_auxiliary_gradient(nothing):
    combined, metrics = GradientNormBalance().combine(two([[3.0, 0.0], [4.0]], nothing))
    assert metrics["balance"] == 0.0 and metrics["grad_norm_preference"] == 0.0
    assert [g.tolist() for g in combined] == [[3.0, 0.0], [4.0]]


def test_balance_is_zero_without_a_main_gradient():
    combined, metrics = GradientNormBalance().combine(two([[0.0], [0.0]], [[1.0], [2.0]]))
    assert metrics["balance"] == 0.0
    assert [g.tolist() for g in combined] == [[0.0], [0.0]]


def test_rho_zero_leaves_the_main_gradient_bit_by_bit():
    main = [[0.1, 0.2], [0.3]]
    combined, _ = GradientNormBalance(rho=0.0).combine(two(main, [[7.0, 1.0], [1.0]]))
    assert all(torch.equal(a, torch.tensor(b)) for a, b in zip(combined, main, strict=True))


@pytest.mark.parametrize("bad", [math.nan, math.inf])
@pytest.mark.parametrize("side", ["response", "preference"])
def test_gradient_that_is_not_finite_stops_the_step(bad, side):
    gradients = two([[1.0]], [[1.0]])
    gradients[side] = [torch.tensor([bad])]
    with pytest.raises(FloatingPointError, match=f"{side}.*the step is not taken"):
        GradientNormBalance().combine(gradients)


def test_balance_that_is_not_finite_stops_the_step():
    main = torch.tensor([1e300], dtype=torch.float64)
    gradients = {"response": [main], "preference": [torch.tensor([1e-40])]}
    with pytest.raises(FloatingPointError, match=r"λ = .*is not finite"):
        GradientNormBalance().combine(gradients)


def test_groups():
    assert GradientNormBalance().groups(["response", "preference"]) == {
        "response": {"response": 1.0},
        "preference": {"preference": 1.0},
    }
    assert WeightedSum({"b": 0.3}).groups(["a", "b"]) == {"all": {"a": 1.0, "b": 0.3}}
    with pytest.raises(ValueError, match=r"the terms 'response' and 'preference', got .*'reverse_kl'"):
        GradientNormBalance().groups(["reverse_kl"])
    with pytest.raises(ValueError, match=r"unknown terms \['c'\]"):
        WeightedSum({"c": 1.0}).groups(["a", "b"])
    with pytest.raises(ValueError, match="rho"):
        GradientNormBalance(rho=-1)


def test_gradients_may_be_missing():
    a, b = torch.tensor([1.0]), torch.tensor([2.0])
    first, second, third = add_scaled([a, None, None], [b, b.clone(), None], 0.5)
    assert (first, second, third) == (torch.tensor([2.0]), torch.tensor([1.0]), None)
    assert global_norm([None]) == 0.0
