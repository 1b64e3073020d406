"""Muon and AdamW over the parameters of a decoder, against slow references."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import Tensor

from had.models.tiny import make_qwen3
from had.pretraining.muon import (
    MATRIX_LR_RATIO,
    MOMENTUM,
    NEWTON_SCHULZ,
    NUM_ITERATIONS,
    SHARPNESS_LR_RATIO,
    MuonAdamW,
    orthogonalise,
)

LR, DECAY = 3e-3, 0.1
SHAPES = [(8, 8), (5, 12), (12, 5), (1, 7)]


def model(seed: int = 0) -> torch.nn.Module:
    return make_qwen3(20, hidden=16, layers=2, heads=2, kv_heads=2, head_dim=8, intermediate=24, seed=seed)


def gradients(module: torch.nn.Module, step: int) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(step)
    return {
        name: torch.randn(parameter.shape, generator=generator)
        for name, parameter in module.named_parameters()
    }


def apply(module: torch.nn.Module, grads: dict[str, Tensor]) -> None:
    for name, parameter in module.named_parameters():
        parameter.grad = grads[name].clone()


def polynomial(value: float) -> float:
    """What the iteration makes of one singular value."""
    a, b, c = NEWTON_SCHULZ
    for _ in range(NUM_ITERATIONS):
        value = a * value + b * value**3 + c * value**5
    return value


def slow_orthogonalise(gradient: Tensor) -> Tensor:
    left, values, right = torch.linalg.svd(gradient.double(), full_matrices=False)
    norm = float(values.square().sum().sqrt()) + 1e-7
    new = torch.tensor([polynomial(float(value) / norm) for value in values], dtype=torch.float64)
    return (left * new) @ right


@pytest.mark.parametrize("shape", SHAPES)
def test_every_singular_value_goes_through_the_polynomial(shape: tuple[int, int]) -> None:
    gradient = torch.randn(shape, generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(
        orthogonalise(gradient).double(), slow_orthogonalise(gradient), atol=2e-5, rtol=1e-4
    )


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("scale", [1e-4, 1.0, 1e4])
def test_the_result_is_nearly_orthogonal_whatever_the_size_of_the_gradient(
    shape: tuple[int, int], scale: float
) -> None:
    gradient = torch.randn(shape, generator=torch.Generator().manual_seed(2))
    values = torch.linalg.svdvals(orthogonalise(gradient * scale))
    assert values.min() > 0.5 and values.max() < 1.3  # the iteration leaves them around 1, by design
    torch.testing.assert_close(orthogonalise(gradient.T), orthogonalise(gradient).T)


def test_a_zero_gradient_stays_zero() -> None:
    assert torch.equal(orthogonalise(torch.zeros(4, 6)), torch.zeros(4, 6))


def test_matrices_go_to_muon_and_all_else_to_adamw_once() -> None:
    module = model()
    optimizer = MuonAdamW(module, LR, DECAY)
    names = {id(parameter): name for name, parameter in module.named_parameters()}
    muon = {names[id(p)] for p in optimizer.matrices}
    rest, sharp = ({names[id(p)] for p in group["params"]} for group in optimizer.adamw.param_groups)
    assert all(name.endswith("proj.weight") for name in muon)
    assert len(muon) == 2 * 7  # q, k, v, o, gate, up, down in two layers
    assert sharp == {f"model.layers.{i}.self_attn.{n}_norm.weight" for i in range(2) for n in "qk"}
    assert "model.embed_tokens.weight" in rest and "model.norm.weight" in rest
    assert sorted([*muon, *rest, *sharp]) == sorted(names.values())


def test_steps_equal_a_slow_reference() -> None:
    module, twin = model(), model()
    optimizer = MuonAdamW(module, LR, DECAY)
    params = dict(twin.named_parameters())
    matrices = [n for n, p in params.items() if n.endswith("proj.weight")]
    sharp = [n for n in params if n.endswith(("q_norm.weight", "k_norm.weight"))]
    momenta = {name: torch.zeros_like(params[name]) for name in matrices}
    groups = [
        {"params": [params[n] for n in params if n not in (*matrices, *sharp)], "weight_decay": DECAY},
        {"params": [params[n] for n in sharp], "weight_decay": 0.0},
    ]
    slow = torch.optim.AdamW(groups, betas=(0.9, 0.95), foreach=False, fused=False)
    for step, lr in enumerate((LR, LR, LR / 2)):
        grads = gradients(module, step)
        apply(module, grads)
        optimizer.set_lr(lr)
        optimizer.step()
        optimizer.zero_grad()
        assert all(parameter.grad is None for parameter in module.parameters())
        apply(twin, grads)
        slow.param_groups[0]["lr"], slow.param_groups[1]["lr"] = lr, lr * SHARPNESS_LR_RATIO
        slow.step()
        for name in matrices:
            momenta[name] = MOMENTUM * momenta[name] + grads[name]
            direction = slow_orthogonalise(grads[name] + MOMENTUM * momenta[name]).float()
            rows, columns = direction.shape
            with torch.no_grad():
                params[name] -= lr * MATRIX_LR_RATIO * max(1.0, rows / columns) ** 0.5 * direction
    for name, parameter in module.named_parameters():
        torch.testing.assert_close(parameter, params[name], atol=2e-6, rtol=1e-4, msg=name)


def test_a_saved_state_goes_on_as_if_nothing_had_happened() -> None:
    module = model()
    optimizer = MuonAdamW(module, LR, DECAY)
    apply(module, gradients(module, 0))
    optimizer.step()
    twin = model(seed=1)
    twin.load_state_dict(module.state_dict())
    resumed = MuonAdamW(twin, LR, DECAY)
    resumed.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    for one, optim in ((module, optimizer), (twin, resumed)):
        apply(one, gradients(one, 1))
        optim.set_lr(LR)
        optim.step()
    assert all(torch.equal(a, b) for a, b in zip(module.parameters(), twin.parameters(), strict=True))
