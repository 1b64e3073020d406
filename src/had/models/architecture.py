"""A model's size from its configuration alone; no weight is read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from transformers import AutoConfig, AutoModelForCausalLM, PretrainedConfig, PreTrainedModel

from had.models.model_files import ModelFiles
from had.models.student import torch_dtype


@dataclass(frozen=True)
class ModelSize:
    """What memory and time depend on.

    Attributes:
        parameters: all, tied ones once.
        active: those that one token goes through (all, less the experts that a router leaves out).
        largest_layer: parameters of the largest decoder layer.
        outside_layers: parameters of embedding, last norm and output layer.
        layers: decoder layers.
        kv_numbers: keys and values that one token leaves in the cache, over all layers.
        vocabulary: entries of the output layer.
    """

    parameters: int
    active: int
    largest_layer: int
    outside_layers: int
    layers: int
    kv_numbers: int
    vocabulary: int


def read_config(files: ModelFiles, published: Mapping[str, Mapping[str, Any]]) -> PretrainedConfig:
    """The configuration of a model: its own `config.json` where it can be had, else the published numbers.

    Args:
        files: names the model.
        published: by hub name, `model_type` and the numbers of `config.json`.

    Raises:
        ValueError: neither is there.
    """
    if files.path in published:  # asking the hub first would cost seconds without a network
        numbers = dict(published[files.path])
        return AutoConfig.for_model(str(numbers.pop("model_type")), **numbers)
    try:
        where = files.locate()
    except FileNotFoundError as error:
        raise ValueError(
            f"plan: model {files.path!r} is not here, and planning.architectures has no numbers of it (it "
            f"has {', '.join(sorted(published)) or 'none'}); download its config.json, or add its numbers"
        ) from error
    return AutoConfig.from_pretrained(where, revision=files.revision, trust_remote_code=False)


def meta_model(
    config: PretrainedConfig, dtype: str, attn_implementation: str | None = None
) -> PreTrainedModel:
    """The model on the meta device: shapes without memory."""
    with torch.device("meta"):
        return AutoModelForCausalLM.from_config(
            config,
            dtype=torch_dtype(dtype),
            attn_implementation=attn_implementation,
            trust_remote_code=False,
        )


def model_size(config: PretrainedConfig) -> ModelSize:
    """Count the parameters of the model that the configuration describes."""
    model, text = meta_model(config, "bfloat16"), config.get_text_config()
    sizes = {name: parameter.numel() for name, parameter in model.named_parameters()}  # tied ones once
    experts = sum(size for name, size in sizes.items() if ".experts." in name)
    idle = 0
    if experts:
        idle = experts - experts * text.num_experts_per_tok // text.num_experts
    layers = [sum(p.numel() for p in layer.parameters()) for layer in model.get_decoder().layers]
    head_size = getattr(text, "head_dim", None) or text.hidden_size // text.num_attention_heads
    total = sum(sizes.values())
    return ModelSize(
        parameters=total,
        active=total - idle,
        largest_layer=max(layers),
        outside_layers=total - sum(layers),
        layers=len(layers),
        kv_numbers=2 * len(layers) * text.num_key_value_heads * head_size,
        vocabulary=text.vocab_size,
    )
