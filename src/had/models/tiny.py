"""Small randomly initialised Qwen3 models, made from a configuration only."""

from __future__ import annotations

import torch
from transformers import PreTrainedModel, Qwen3Config, Qwen3ForCausalLM


def make_qwen3(
    vocab_size: int,
    hidden: int = 192,
    layers: int = 4,
    heads: int = 6,
    kv_heads: int = 2,
    head_dim: int = 32,
    intermediate: int = 512,
    max_positions: int = 4096,
    rope_theta: float = 1e4,
    tie_embeddings: bool = True,
    seed: int = 0,
    bos_id: int | None = None,
    eos_id: int | None = None,
    pad_id: int | None = None,
) -> Qwen3ForCausalLM:
    """A Qwen3 model with random float32 weights; the same arguments give the same weights.

    Args:
        vocab_size: entries of the embedding.
        hidden: width of the residual stream.
        layers: decoder layers.
        heads: query heads.
        kv_heads: key/value heads; must divide `heads`.
        head_dim: width of one head.
        intermediate: width of the MLP.
        max_positions: longest context, in tokens.
        rope_theta: base of the rotary positions; a high one leaves narrow heads few dimensions that tell
            neighbours apart.
        tie_embeddings: share the embedding with the output layer.
        seed: of the initialisation; the caller's random state is left as it was.
        bos_id: id of the first token of a text, None where the tokenizer has none.
        eos_id: id of the end-of-turn token.
        pad_id: id of the padding token.

    Raises:
        ValueError: `kv_heads` does not divide `heads`, or `head_dim` is odd.
    """
    if heads % kv_heads:
        raise ValueError(f"kv_heads: expected a divisor of heads={heads}, got {kv_heads}")
    if head_dim % 2:
        raise ValueError(
            f"head_dim: expected an even number (rotary positions come in pairs), got {head_dim}"
        )
    config = Qwen3Config(
        vocab_size=vocab_size,
        hidden_size=hidden,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=kv_heads,
        head_dim=head_dim,
        intermediate_size=intermediate,
        max_position_embeddings=max_positions,
        rope_parameters={"rope_type": "default", "rope_theta": rope_theta},
        tie_word_embeddings=tie_embeddings,
        bos_token_id=bos_id,
        eos_token_id=eos_id,
        pad_token_id=pad_id,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return Qwen3ForCausalLM(config)


def sharpened(model: PreTrainedModel, factor: float) -> PreTrainedModel:
    """Multiply all logits by a factor, in place: sampling at temperature T becomes sampling at T / factor.

    The last norm's weight carries it, because the output layer may be tied to the embedding.

    Args:
        model: of the Qwen3 architecture; changed and returned.
        factor: 1 changes nothing.
    """
    with torch.no_grad():
        model.base_model.norm.weight.mul_(factor)  # type: ignore[union-attr,operator]
    return model
