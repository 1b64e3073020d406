"""What an engine was asked and how long it worked: counters that only grow, read before and after a phase."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar, cast, runtime_checkable

from had.engines.base import EngineFailure, Generation

Method = TypeVar("Method", bound=Callable[..., Any])


@dataclass
class EngineUsage:
    """Counters of one engine since it was made.

    Attributes:
        busy_s: wall time inside `generate`, `score` and `logprobs`: the model's work, and whatever the engine
            does beside it (an engine on servers waits there for their answers).
        tokens_generated: sampled tokens.
        steps: decoding steps in which they were sampled; tokens per step is the mean number of rows that
            decode together.
        tokens_scored: tokens whose probabilities were asked for.
        tokens_read: tokens of prompts (and of scored replies) of which the engine tells what it knew already.
        tokens_cached: of these, the ones whose keys and values were there.
    """

    busy_s: float = 0.0
    tokens_generated: int = 0
    steps: int = 0
    tokens_scored: int = 0
    tokens_read: int = 0
    tokens_cached: int = 0

    def note_generated(self, answers: Sequence[Generation | EngineFailure]) -> None:
        """Count answers that were decoded side by side: as many steps as the longest has tokens."""
        lengths = [len(answer.ids) for answer in answers if isinstance(answer, Generation)]
        self.tokens_generated += sum(lengths)
        self.steps += max(lengths, default=0)

    def note_read(self, num_tokens: int, num_cached: int | None) -> None:
        """Count a prompt; None where the engine does not tell."""
        if num_cached is not None:
            self.tokens_read += num_tokens
            self.tokens_cached += num_cached


@runtime_checkable
class MeteredEngine(Protocol):
    """An engine that counts."""

    usage: EngineUsage


def timed(method: Method) -> Method:
    """Count the time inside a method of a metered engine."""

    @functools.wraps(method)
    def call(self: MeteredEngine, *args: Any, **kwargs: Any) -> Any:
        started = time.monotonic()
        try:
            return method(self, *args, **kwargs)
        finally:
            self.usage.busy_s += time.monotonic() - started

    return cast(Method, call)


@dataclass(frozen=True)
class EngineMeter:
    """The counters of several engines that work in turn.

    Attributes:
        engines: those of one process; the ones that do not count are left out.
    """

    engines: Sequence[Any]

    def __call__(self) -> dict[str, float]:
        """Sums over the engines; empty when none of them counts."""
        counts: dict[str, float] = {}
        for engine in self.engines:
            if isinstance(engine, MeteredEngine):
                for name, value in vars(engine.usage).items():
                    counts[name] = counts.get(name, 0) + value
        return counts
