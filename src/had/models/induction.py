"""Gives a small Qwen3 an induction head at initialisation: it can copy from its prompt from the start.

From random weights a model of this size needs tens of millions of tokens until copying appears; copying names
and commands is most of what a household game asks for. Everything stays trainable.
"""

from __future__ import annotations

from typing import Any

import torch
from transformers import Qwen3ForCausalLM

CODE_DIMS = 24  # dimensions that identify a token for the match; they must fit into the slow rotary pairs
NUM_FAST_PAIRS = 8  # rotary pairs that tell neighbouring positions apart
SHARPNESS = 2.0  # weight of the query and key norms: attention logits reach 8 * SHARPNESS²


@torch.no_grad()
def add_induction_head(model: Qwen3ForCausalLM, seed: int = 0) -> None:
    """Write the head into layers 0 and 1.

    Layer 0, head 0 attends to the previous token and copies its code into dimensions of its own. In layer 1
    every head attends to the tokens whose *previous* token is the current one, and copies their embedding:
    [A][B] … [A] → [B].

    Args:
        model: at least two layers, head_dim 64 or more, tied embeddings; freshly initialised.
        seed: of the codes.

    Raises:
        ValueError: the model is too small for it.
    """
    config: Any = model.config
    hidden, width, heads = config.hidden_size, config.head_dim, config.num_attention_heads
    free = hidden - CODE_DIMS
    if config.num_hidden_layers < 2 or width < 2 * (NUM_FAST_PAIRS + CODE_DIMS // 2) or heads * width < free:
        raise ValueError(
            f"induction head: expected >= 2 layers, head_dim >= {2 * NUM_FAST_PAIRS + CODE_DIMS} and "
            f"heads * head_dim >= {free}, got {config.num_hidden_layers} layers, {heads} heads of {width}"
        )
    if config.num_key_value_heads != heads:
        raise ValueError("induction head: expected as many key-value heads as heads")
    scale = config.initializer_range
    code, previous = slice(1, 1 + CODE_DIMS), slice(1 + CODE_DIMS, 1 + 2 * CODE_DIMS)
    generator = torch.Generator().manual_seed(seed)
    table = model.model.embed_tokens.weight
    table.copy_(torch.randn(table.shape, generator=generator) * scale)
    table[:, 0] = scale  # the same for all tokens: constant queries and keys are made of it
    table[:, previous] = 0.0  # kept free for the code of the previous token

    for layer in model.model.layers:  # nothing else may disturb the codes at first
        layer.self_attn.o_proj.weight.zero_()
        layer.mlp.down_proj.weight.zero_()
    half = width // 2
    frequencies = config.rope_parameters["rope_theta"] ** (-torch.arange(half) / half)
    first, second = model.model.layers[0].self_attn, model.model.layers[1].self_attn
    for attention in (first, second):
        attention.q_norm.weight.fill_(SHARPNESS)
        attention.k_norm.weight.fill_(SHARPNESS)
    first.q_proj.weight[:width] = 0.0
    first.k_proj.weight[:width] = 0.0
    first.v_proj.weight[:width] = 0.0
    fast = torch.arange(NUM_FAST_PAIRS)
    first.q_proj.weight[fast, 0] = 1.0
    first.k_proj.weight[fast, 0] = frequencies[:NUM_FAST_PAIRS].cos()  # turned by one position
    first.k_proj.weight[half + fast, 0] = frequencies[:NUM_FAST_PAIRS].sin()
    index = torch.arange(CODE_DIMS)
    first.v_proj.weight[index, 1 + index] = 1.0
    first.o_proj.weight[1 + CODE_DIMS + index, index] = scale

    slow = torch.cat([torch.arange(half - CODE_DIMS // 2, half), torch.arange(width - CODE_DIMS // 2, width)])
    copied = torch.cat([torch.arange(0, 1 + CODE_DIMS), torch.arange(1 + 2 * CODE_DIMS, hidden)])
    for weight in (second.q_proj.weight, second.k_proj.weight, second.v_proj.weight):
        weight.zero_()
    for head in range(heads):
        second.q_proj.weight[head * width + slow, torch.arange(code.start, code.stop)] = 1.0
        second.k_proj.weight[head * width + slow, torch.arange(previous.start, previous.stop)] = 1.0
    rows = torch.arange(len(copied))
    second.v_proj.weight[rows, copied] = 1.0
    second.o_proj.weight[copied, rows] = 2 * scale
