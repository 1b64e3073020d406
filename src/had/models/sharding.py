"""How the student lies in memory while it trains: precision, activation checkpointing, sharding (FSDP2)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import MethodType
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import (
    FSDPModule,
    MixedPrecisionPolicy,
    fully_shard,
    register_fsdp_forward_method,
)
from torch.distributed.tensor import DTensor
from transformers import PreTrainedModel

from had.models.forward import scored_logits
from had.models.student import torch_dtype

_FORWARD = "scored_logits"


@dataclass(frozen=True)
class Placement:
    """How the student's weights, gradients, optimizer state and activations are kept.

    Attributes:
        weights: type of the weights that are trained, of their gradients and of the optimizer's state. At a
            learning rate of 1e-5 most updates are smaller than what bfloat16 can resolve: use float32.
        compute: type in which *sharded* weights are gathered and computed with. Weights that are not sharded
            are computed with as `trainer.precision` says.
        activation_checkpointing: keep only the inputs of the layers, compute the rest again when going back.
    """

    weights: str = "float32"
    compute: str = "float32"
    activation_checkpointing: bool = False

    def __post_init__(self) -> None:
        for name in (self.weights, self.compute):
            torch_dtype(name)

    def prepare(self, model: PreTrainedModel) -> PreTrainedModel:
        """The model, ready to be trained (and, under FSDP, to be sharded)."""
        if self.activation_checkpointing:
            # the re-entrant kind would not let two backward passes share one graph
            model.gradient_checkpointing_enable({"use_reentrant": False})
        return model.train()

    def shard(self, model: PreTrainedModel, mesh: DeviceMesh) -> Callable[..., Tensor]:
        """Shard the parameters in place, layer by layer; gradients and optimizer state follow them.

        Every rank must hold the same weights before.

        Args:
            model: what `prepare` returned.
            mesh: one-dimensional, over the ranks.

        Returns:
            `scored_logits` of this model. The model has to be called through it, because it gathers the
            parameters that belong to no layer (embedding, last norm, output layer, also when tied).
        """
        policy = MixedPrecisionPolicy(param_dtype=torch_dtype(self.compute), reduce_dtype=torch.float32)
        for layer in decoder_layers(model):
            fully_shard(layer, mesh=mesh, mp_policy=policy)
        fully_shard(model, mesh=mesh, mp_policy=policy)
        setattr(model, _FORWARD, MethodType(scored_logits, model))
        register_fsdp_forward_method(model, _FORWARD)
        return getattr(model, _FORWARD)


def decoder_layers(model: PreTrainedModel) -> nn.ModuleList:
    """The layers of a decoder.

    Raises:
        ValueError: the model keeps them under another name than `layers`.
    """
    layers = getattr(model.get_decoder(), "layers", None)
    if not isinstance(layers, nn.ModuleList):
        raise ValueError(
            f"model: expected a decoder with its layers under `layers`, got {type(model).__name__}; "
            "train it with trainer=ddp, or on a single device"
        )
    return layers


def reshard(model: nn.Module) -> None:
    """Give back the parameters that a forward pass gathered, where no backward pass follows it.

    FSDP2 leaves the root's gathered for the backward pass; without one, its next gradient is wrong. Nothing
    happens to a model that is not sharded.
    """
    for module in model.modules():
        if isinstance(module, FSDPModule):
            module.reshard()


def full_state_dict(model: nn.Module) -> dict[str, Tensor]:
    """The whole weights by name, those of a sharded model gathered; must be called on every rank."""
    return {
        name: value.full_tensor() if isinstance(value, DTensor) else value
        for name, value in model.state_dict().items()
    }


def unsharded_copy(model: PreTrainedModel, weights: dict[str, Tensor]) -> PreTrainedModel:
    """A plain model around gathered weights, for `save_pretrained`; nothing is copied."""
    with torch.device("meta"):
        plain: Any = type(model)(model.config)
    plain.load_state_dict(weights, assign=True)
    plain.tie_weights()
    return plain
