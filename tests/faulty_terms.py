"""Loss terms that go wrong in earnest: numbers that are not finite, requests for memory that is not there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from had.batch import SpanSet
from had.losses.action_preference import ActionPreference
from had.losses.response_nll import ResponseNLL

NO_MACHINE_HAS = 2**46  # float32 numbers: more than the address space of a process


class Poisoned(ResponseNLL):
    """The response loss, times infinity in its first calls after `free`."""

    def __init__(self, free: int, poisoned: int) -> None:
        super().__init__()
        self.free, self.until, self.calls = free, free + poisoned, 0

    def __call__(self, spans: Mapping[str, SpanSet], logits: Mapping[str, Tensor]) -> Tensor:
        value = super().__call__(spans, logits)
        self.calls += 1
        return value * torch.inf if self.free < self.calls <= self.until else value


class InfiniteSlope(ActionPreference):
    """A loss of 0 with an infinite gradient: the root of a zero that depends on the logits."""

    def __call__(self, spans: Mapping[str, SpanSet], logits: Mapping[str, Tensor]) -> Tensor:
        value = super().__call__(spans, logits)
        return torch.sqrt(value - value.detach())


class _AskForTooMuch(torch.autograd.Function):
    @staticmethod
    def forward(context: Any, value: Tensor) -> Tensor:
        return value.clone()

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> Tensor:
        return gradient + torch.empty(NO_MACHINE_HAS)[0]


class HungryBackward(ActionPreference):
    """Asks the allocator for too much in a backward pass with more than `most` scored tokens."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self.most = most

    def __call__(self, spans: Mapping[str, SpanSet], logits: Mapping[str, Tensor]) -> Tensor:
        value = super().__call__(spans, logits)
        num_tokens = sum(logits_NV.shape[0] for logits_NV in logits.values())
        return _AskForTooMuch.apply(value) if num_tokens > self.most else value
