"""Memory of an optimizer step before it is taken: the real forward and backward, on tensors without data.

Dimension legend: B rows, T tokens, N scored tokens, V vocabulary, H heads, G key/value heads, D head size.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from transformers import AttentionInterface, PretrainedConfig

from had.models.architecture import ModelSize, meta_model
from had.models.forward import scored_logits
from had.models.sharding import Placement
from had.models.student import torch_dtype

NUM_NODES = 5  # of the token tree of a record: prompt, reply, reasoning, two actions

_ATTENTION = "had_planned"


class MemoryTrace(TorchDispatchMode):
    """Counts the bytes of all tensors that are made while it is active and not yet freed.

    Attributes:
        live, peak: bytes now, and at most.
    """

    def __init__(self) -> None:
        super().__init__()
        self.live = self.peak = 0
        self._known: set[int] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        known_before = {id(t.untyped_storage()) for t in tree_leaves((args, kwargs)) if isinstance(t, Tensor)}
        result = func(*args, **(kwargs or {}))
        for tensor in tree_leaves(result):
            if isinstance(tensor, Tensor):
                self._note(tensor, known_before)
        return result

    def _note(self, tensor: Tensor, inputs: set[int]) -> None:
        storage = tensor.untyped_storage()
        key = id(storage)
        if key in self._known or key in inputs:  # a view, or written in place
            return
        size = storage.nbytes()
        self._known.add(key)
        self.live += size
        self.peak = max(self.peak, self.live)
        weakref.finalize(storage, self._forget, key, size)

    def _forget(self, key: int, size: int) -> None:
        self._known.discard(key)
        self.live -= size


class _FusedAttention(torch.autograd.Function):
    """What a fused kernel allocates and keeps: its inputs, its output, and a sum per query."""

    @staticmethod
    def forward(ctx: Any, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        output = torch.empty_like(query)
        sums_BHT = query.new_empty(query.shape[:3], dtype=torch.float32)
        ctx.save_for_backward(query, key, value, output, sums_BHT)
        return output

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, ...]:
        query, key, value, _, _ = ctx.saved_tensors
        return torch.empty_like(query), torch.empty_like(key), torch.empty_like(value)


def _planned_attention(
    module: nn.Module, query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor | None, **_: Any
) -> tuple[Tensor, None]:
    """As `sdpa` with a mask: keys and values repeated, then one fused kernel."""
    repeats = query.shape[1] // key.shape[1]
    key, value = (
        it[:, :, None].expand(-1, -1, repeats, -1, -1).reshape(*query.shape[:2], *it.shape[2:])
        for it in (key, value)
    )
    return _FusedAttention.apply(query, key, value).transpose(1, 2).contiguous(), None


AttentionInterface.register(_ATTENTION, _planned_attention)


@dataclass(frozen=True)
class StepShape:
    """The largest micro-batch of a step.

    Attributes:
        rows, tokens: padded size.
        scored: tokens with logits.
        groups: gradients that are kept apart (2 when two terms are balanced), each a backward pass.
    """

    rows: int
    tokens: int
    scored: int
    groups: int


def activation_bytes(
    config: PretrainedConfig,
    compute: str,
    is_checkpointed: bool,
    shape: StepShape,
    make_mask: Callable[[Tensor, Tensor], Tensor],
) -> int:
    """Peak of forward and backward of a micro-batch, without weights and without the gradients that stay.

    Args:
        config: of the student.
        compute: type of the computation.
        is_checkpointed: activations are computed again when going back.
        shape: of the micro-batch.
        make_mask: from node indices [B, T] and parents [B, M], both without data, the mask [B, 1, T, T].
    """
    placement = Placement(activation_checkpointing=is_checkpointed)
    model = placement.prepare(meta_model(config, compute, _ATTENTION))
    for parameter in model.parameters():  # made before the trace: not counted, as in every later micro-batch
        parameter.grad = torch.empty_like(parameter)
    with torch.device("meta"):
        ids_BT = torch.zeros(shape.rows, shape.tokens, dtype=torch.long)
        parents_BM = torch.zeros(shape.rows, NUM_NODES, dtype=torch.long)
        targets_N = torch.zeros(shape.scored, dtype=torch.long)
    with MemoryTrace() as trace:
        mask_B1TT = make_mask(ids_BT, parents_BM)
        logits_NV = scored_logits(model, ids_BT, ids_BT, mask_B1TT, targets_N, targets_N)
        loss = F.cross_entropy(logits_NV, targets_N)
        for group in range(shape.groups):
            loss.backward(retain_graph=group + 1 < shape.groups)
    return trace.peak


@dataclass(frozen=True)
class TrainingMemory:
    """Bytes of one process while it trains.

    Attributes:
        weights: those that are trained.
        copies: of weights, in which they are gathered or computed with.
        gradients: of every group.
        optimizer: two moments.
        activations: of the largest micro-batch.
    """

    weights: int
    copies: int
    gradients: int
    optimizer: int
    activations: int

    @property
    def total(self) -> int:
        """Their sum."""
        return self.weights + self.copies + self.gradients + self.optimizer + self.activations


def training_memory(
    size: ModelSize, placement: Placement, activations: int, groups: int, num_shards: int, copies: int = 0
) -> TrainingMemory:
    """Where the bytes of one process are.

    Args:
        size: of the student.
        placement: type of the weights.
        activations: what `activation_bytes` said.
        groups: gradients that are kept apart.
        num_shards: processes that share weights, gradients and optimizer state; 1 without sharding.
        copies: bytes of copied weights.
    """
    shard = -(-size.parameters * torch_dtype(placement.weights).itemsize // num_shards)
    return TrainingMemory(shard, copies, groups * shard, 2 * shard, activations)


def gathered_bytes(size: ModelSize, placement: Placement) -> int:
    """Weights that FSDP2 holds in full at once: two layers (it fetches ahead) and all that is in no layer."""
    number = torch_dtype(placement.compute).itemsize
    return (2 * size.largest_layer + size.outside_layers) * number
