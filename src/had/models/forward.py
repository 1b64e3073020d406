"""The training forward: logits at the scored positions of packed token trees, and nowhere else.

Dimension legend: B rows, T tokens of a row, N scored tokens, D hidden size, V vocabulary.
"""

from __future__ import annotations

import torch
from torch import Tensor
from transformers import PreTrainedConfig, PreTrainedModel

FULL, SLIDING = "full_attention", "sliding_attention"  # kinds of layers, as configurations name them


def scored_logits(
    model: PreTrainedModel,
    tokens_BT: Tensor,
    positions_BT: Tensor,
    mask_B1TT: Tensor,
    rows_N: Tensor,
    sources_N: Tensor,
) -> Tensor:
    """Next-token logits at the given positions; the output layer never sees the other positions.

    Args:
        model: a causal language model of attention layers, full or sliding, and `attn_implementation='sdpa'`.
        tokens_BT: [B, T] token ids.
        positions_BT: [B, T] position ids.
        mask_B1TT: [B, 1, T, T] bool, True where the query (dim 2) may see the key (dim 3).
        rows_N: [N] row of each scored token.
        sources_N: [N] position whose hidden state predicts the token.

    Returns:
        [N, V] float32 logits, with gradient.
    """
    backbone = getattr(model, model.base_model_prefix)
    dtype = _computed_dtype(model, tokens_BT.device)
    masks = _masks_of_layers(model.config.get_text_config(), positions_BT, mask_B1TT, dtype)
    hidden_BTD = backbone(
        input_ids=tokens_BT, position_ids=positions_BT, attention_mask=masks, use_cache=False
    ).last_hidden_state
    logits_NV = model.get_output_embeddings()(hidden_BTD[rows_N, sources_N]).float()
    softcap = getattr(model.config.get_text_config(), "final_logit_softcapping", None)
    return logits_NV if softcap is None else torch.tanh(logits_NV / softcap) * softcap


def _masks_of_layers(
    config: PreTrainedConfig, positions_BT: Tensor, mask_B1TT: Tensor, dtype: torch.dtype
) -> Tensor | dict[str, Tensor]:
    """The mask, or one for each kind of layer where some see only the last `sliding_window` tokens (Gemma).

    The library would give a mask of four dimensions to all layers alike. Positions are depths in the tree, so
    their difference is the distance in the sequence.
    """
    if SLIDING not in (getattr(config, "layer_types", None) or ()):
        return _additive(mask_B1TT, dtype)
    distances_B1TT = (positions_BT[:, :, None] - positions_BT[:, None, :])[:, None]
    near_B1TT = mask_B1TT & (distances_B1TT < config.sliding_window)
    return {FULL: _additive(mask_B1TT, dtype), SLIDING: _additive(near_B1TT, dtype)}


def _additive(mask_B1TT: Tensor, dtype: torch.dtype) -> Tensor:
    """Zero where True, else minus infinity: kernels would make such a mask of their own in every layer."""
    zeros_B1TT = torch.zeros(mask_B1TT.shape, dtype=dtype, device=mask_B1TT.device)
    return zeros_B1TT.masked_fill_(~mask_B1TT, float("-inf"))


def _computed_dtype(model: PreTrainedModel, device: torch.device) -> torch.dtype:
    """The type of queries and keys."""
    if device.type != "meta" and torch.is_autocast_enabled(device.type):
        return torch.get_autocast_dtype(device.type)
    return model.get_input_embeddings().weight.dtype  # type: ignore[return-value]
