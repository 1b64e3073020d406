"""Small random Qwen3 models."""

import pytest
import torch

from had.models.tiny import make_qwen3, sharpened


def test_the_same_arguments_give_the_same_weights_and_leave_the_random_state() -> None:
    torch.manual_seed(5)
    state = torch.random.get_rng_state()
    first, second, other = make_qwen3(50, seed=1), make_qwen3(50, seed=1), make_qwen3(50, seed=2)
    assert torch.equal(torch.random.get_rng_state(), state)
    assert all(torch.equal(a, b) for a, b in zip(first.parameters(), second.parameters(), strict=True))
    assert not torch.equal(first.lm_head.weight, other.lm_head.weight)


def test_shapes_and_ids_follow_the_arguments() -> None:
    model = make_qwen3(50, hidden=16, layers=3, heads=2, kv_heads=1, head_dim=4, intermediate=24,
                       max_positions=99, bos_id=None, eos_id=7, pad_id=0)  # fmt: skip
    assert len(model.model.layers) == 3
    assert model.model.layers[0].self_attn.q_proj.weight.shape == (8, 16)
    assert model.model.layers[0].self_attn.k_proj.weight.shape == (4, 16)
    assert (model.config.eos_token_id, model.config.pad_token_id, model.config.bos_token_id) == (7, 0, None)
    assert model.config.max_position_embeddings == 99
    assert model.lm_head.weight is model.model.embed_tokens.weight


def test_embeddings_can_stay_apart() -> None:
    model = make_qwen3(50, tie_embeddings=False)
    assert model.lm_head.weight is not model.model.embed_tokens.weight


def test_impossible_heads_are_refused() -> None:
    with pytest.raises(ValueError, match="kv_heads: expected a divisor of heads=6, got 4"):
        make_qwen3(50, heads=6, kv_heads=4)
    with pytest.raises(ValueError, match="head_dim: expected an even number"):
        make_qwen3(50, head_dim=5)


def test_a_sharpened_model_at_temperature_t_is_the_model_at_a_lower_one() -> None:
    ids = torch.arange(10)[None]
    for is_tied in (True, False):
        model = make_qwen3(50, tie_embeddings=is_tied)
        before = model(ids).logits
        torch.testing.assert_close(sharpened(model, 1.25)(ids).logits, 1.25 * before)
