"""What generates and scores text: the one interface between the acting half and any model runtime."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from had.records import TopKScores


class EngineFailure(RuntimeError):
    """The engine could not answer a request; the episode or label becomes a counted failure."""


class EngineUnavailableError(RuntimeError):
    """The engine as a whole does not answer any more: the run stops."""


@dataclass(frozen=True)
class SamplingParams:
    """How to sample.

    Attributes:
        temperature: 0 means greedy.
        max_new_tokens: limit of the reply, the end-of-turn token included.
    """

    temperature: float = 1.0
    max_new_tokens: int = 128

    def __post_init__(self) -> None:
        if self.temperature < 0:
            raise ValueError(f"temperature: expected >= 0, got {self.temperature}")
        if self.max_new_tokens < 1:
            raise ValueError(f"max_new_tokens: expected >= 1, got {self.max_new_tokens}")


@dataclass(frozen=True)
class Generation:
    """One sampled continuation.

    Attributes:
        ids: sampled ids, the end-of-turn token included when it was sampled.
        logprobs: their log-probabilities under the full vocabulary at temperature 1.
        is_complete: an end-of-turn token was sampled.
    """

    ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    is_complete: bool


class ModelSource(Protocol):
    """Where an engine's model comes from; nothing is loaded until asked."""

    @property
    def revision(self) -> str | None:
        """Commit or tag of a hub model."""

    def locate(self) -> str:
        """The folder or hub name, for engines that load the model themselves."""

    def model(self) -> Any:
        """The loaded model of transformers."""


class Engine(Protocol):
    """A model that can be asked for text.

    A request is answered independently of the others in its batch: its random numbers come from its own seed.
    """

    @property
    def max_context_tokens(self) -> int:
        """Prompt and reply together must fit into this many tokens."""

    def generate(
        self, prompts: Sequence[Sequence[int]], params: SamplingParams, seeds: Sequence[int]
    ) -> list[Generation | EngineFailure]:
        """Sample one continuation per prompt, in order; an unanswerable request yields an EngineFailure."""

    def score(
        self, prompts: Sequence[Sequence[int]], responses: Sequence[Sequence[int]], top_k: int
    ) -> list[TopKScores]:
        """The model's top-k next-token log-probabilities at every token of each response."""

    def logprobs(
        self, prompts: Sequence[Sequence[int]], responses: Sequence[Sequence[int]]
    ) -> list[tuple[float, ...]]:
        """Log-probability of every response token, given the prompt and the earlier response tokens."""

    def load_weights(self, version: int, state_dict: Mapping[str, Any]) -> None:
        """Take over new weights and remember their policy version."""

    @property
    def version(self) -> int:
        """Policy version of the weights in use."""


@runtime_checkable
class SleepingEngine(Protocol):
    """An engine that can give its memory back while the student trains on the same device."""

    def sleep(self) -> None:
        """Free what can be freed; the next request or `load_weights` wakes the engine up."""


@runtime_checkable
class SharedEngine(Protocol):
    """An engine outside the process, used by all ranks: one rank loads weights, the others follow it."""

    @property
    def loaded(self) -> tuple[int, str]:
        """Policy version and label of the weights that were loaded last."""

    def follow(self, loaded: tuple[int, str]) -> None:
        """Another rank has loaded these."""


def refusal(num_prompt: int, num_new: int, max_context_tokens: int) -> EngineFailure | None:
    """Why a request cannot be answered, None when it can.

    Args:
        num_prompt: tokens of the prompt.
        num_new: tokens of the reply, or the most that it may have.
        max_context_tokens: limit of both together.
    """
    if num_prompt == 0:
        return EngineFailure("empty prompt: expected at least one token id")
    if num_prompt + num_new > max_context_tokens:
        return EngineFailure(
            f"prompt of {num_prompt} tokens and {num_new} new tokens exceed the context of "
            f"{max_context_tokens} tokens; shorten the history or lower max_new_tokens"
        )
    return None


def refusals(
    prompts: Sequence[Sequence[int]], seeds: Sequence[int], max_new_tokens: int, max_context_tokens: int
) -> list[EngineFailure | None]:
    """For each request to generate, why it cannot be answered.

    Raises:
        ValueError: the numbers of prompts and seeds differ.
    """
    if len(prompts) != len(seeds):
        raise ValueError(f"seeds: expected one per prompt ({len(prompts)}), got {len(seeds)}")
    return [refusal(len(prompt), max_new_tokens, max_context_tokens) for prompt in prompts]


def check_scorable(
    prompts: Sequence[Sequence[int]], responses: Sequence[Sequence[int]], max_context_tokens: int
) -> None:
    """Refuse what cannot be scored.

    Raises:
        ValueError: the numbers of prompts and responses differ, a prompt is empty, or a pair is too long.
    """
    if len(prompts) != len(responses):
        raise ValueError(f"responses: expected one per prompt ({len(prompts)}), got {len(responses)}")
    for index, (prompt, response) in enumerate(zip(prompts, responses, strict=True)):
        failure = refusal(len(prompt), len(response), max_context_tokens)
        if failure is not None:
            raise ValueError(f"request {index}: {failure}")
