"""A model with an induction head copies repeated sequences before any update."""

from __future__ import annotations

import pytest
import torch

from had.models.induction import add_induction_head
from had.models.tiny import make_qwen3


def copy_accuracy(model: torch.nn.Module) -> float:
    generator = torch.Generator().manual_seed(0)
    sequence = torch.randint(0, 512, (4, 30), generator=generator)
    between = torch.randint(0, 512, (4, 20), generator=generator)
    tokens = torch.cat([sequence, between, sequence], dim=1)
    with torch.no_grad():
        predicted = model(input_ids=tokens).logits[:, 50:-1].argmax(-1)
    return (predicted == tokens[:, 51:]).float().mean().item()


def test_random_weights_do_not_copy_and_the_head_does() -> None:
    model = make_qwen3(512, hidden=128, layers=2, heads=2, kv_heads=2, head_dim=64, intermediate=128)
    assert copy_accuracy(model) < 0.1
    add_induction_head(model)
    assert copy_accuracy(model) > 0.7


@pytest.mark.parametrize("sizes", [{"layers": 1}, {"head_dim": 32}, {"kv_heads": 1}])
def test_a_model_that_is_too_small_is_refused(sizes: dict[str, int]) -> None:
    arguments = {"hidden": 128, "layers": 2, "heads": 2, "kv_heads": 2, "head_dim": 64, "intermediate": 128}
    model = make_qwen3(512, **{**arguments, **sizes})
    with pytest.raises(ValueError, match="induction head"):
        add_induction_head(model)
