"""Sums over the ranks of a distributed run; with one process they are the values themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import nn

from had.losses.gradients import Gradients


def num_ranks() -> int:
    """Processes that train together."""
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


def gather(value: Any) -> list[Any]:
    """The value of every rank, in the order of ranks."""
    if num_ranks() == 1:
        return [value]
    values: list[Any] = [None] * num_ranks()
    dist.all_gather_object(values, value)
    return values


def sum_by_name(parts: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Sums by name over all parts; a name that a part lacks counts as 0."""
    names = dict.fromkeys(name for part in parts for name in part)
    return {name: sum(part.get(name, 0.0) for part in parts) for name in names}


def average(gradients: Gradients, parameters: Sequence[nn.Parameter]) -> Gradients:
    """The mean over the ranks of a gradient that every rank holds in full; without one, a rank adds zeros."""
    if num_ranks() == 1:
        return gradients
    averaged: Gradients = []
    for gradient, parameter in zip(gradients, parameters, strict=True):
        value = torch.zeros_like(parameter) if gradient is None else gradient
        dist.all_reduce(value)
        averaged.append(value.div_(num_ranks()))
    return averaged
