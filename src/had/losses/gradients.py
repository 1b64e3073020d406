"""Gradients as values: a list with one entry per parameter, None where there is none."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import torch
import torch.distributed as dist
from torch import Tensor, nn

Gradients = list[Tensor | None]


def global_norm(gradients: Gradients) -> float:
    """‖g‖₂ over all parameters; of sharded (DTensor) ones over all shards, the same on every rank."""
    present = [gradient for gradient in gradients if gradient is not None]
    if not present:
        return 0.0
    norm = torch.nn.utils.get_total_norm(present)
    full_tensor = getattr(norm, "full_tensor", None)  # DTensor: the local value is a partial norm
    return float(norm if full_tensor is None else full_tensor())


def require_finite(norm: float, what: str) -> float:
    """The norm itself.

    Raises:
        FloatingPointError: it is infinite or not a number.
    """
    if not math.isfinite(norm):
        raise FloatingPointError(
            f"the gradient norm of {what} is {norm}: the step is not taken. Look for extreme logits in the "
            "records of this step (data.dump_records=true), a learning rate that is too high, or a precision "
            "that is too low"
        )
    return norm


@contextmanager
def gradients_in(parameters: Sequence[nn.Parameter], buffer: Gradients) -> Iterator[None]:
    """Let backward passes accumulate into `buffer`; `.grad` is None outside."""
    for parameter, value in zip(parameters, buffer, strict=True):
        parameter.grad = value
    try:
        yield
    finally:
        for index, parameter in enumerate(parameters):
            buffer[index] = parameter.grad
            parameter.grad = None


def require_finite_losses(losses: Mapping[str, float]) -> None:
    """Check the values of the terms, by name.

    Raises:
        FloatingPointError: one is infinite or not a number.
    """
    broken = {name: value for name, value in losses.items() if not math.isfinite(value)}
    if broken:
        named = ", ".join(f"{name!r} is {value}" for name, value in broken.items())
        raise FloatingPointError(
            f"the loss of the term {named}: the step is not taken. Look for extreme logits or labels in the "
            "records of this step (data.dump_records=true)"
        )


def add_scaled(target: Gradients, other: Gradients, scale: float) -> Gradients:
    """The sum target + scale · other, in place."""
    result: Gradients = []
    for mine, theirs in zip(target, other, strict=True):
        if theirs is None:
            result.append(mine)
        elif mine is None:
            result.append(theirs.mul_(scale))
        else:
            result.append(mine.add_(theirs, alpha=scale))
    return result


def average(gradients: Gradients, parameters: Sequence[nn.Parameter], num_ranks: int) -> Gradients:
    """The mean over the ranks of a gradient that every rank holds in full; without one, a rank adds zeros."""
    if num_ranks == 1:
        return gradients
    averaged: Gradients = []
    for gradient, parameter in zip(gradients, parameters, strict=True):
        value = torch.zeros_like(parameter) if gradient is None else gradient
        dist.all_reduce(value)
        averaged.append(value.div_(num_ranks))
    return averaged
