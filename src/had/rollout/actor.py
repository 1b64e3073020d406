"""Who answers: an actor turns prompts into responses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from had.engines.base import Engine, EngineFailure, SamplingParams
from had.prompts.render import Renderer
from had.records import Response


@dataclass(frozen=True)
class Request:
    """One state to answer.

    Attributes:
        prompt_ids: the rendered prompt.
        seed: of this turn; decides the sampled tokens.
        task_id, turn: where it comes from, for actors that choose by turn.
    """

    prompt_ids: tuple[int, ...]
    seed: int
    task_id: str
    turn: int


@dataclass(frozen=True)
class Answer:
    """A response and who gave it (`student` or `teacher`)."""

    response: Response
    actor: str = "student"


class Actor(Protocol):
    """Answers many states at once."""

    def act(self, requests: Sequence[Request]) -> list[Answer | EngineFailure]:
        """One answer per request, in order; a failed request yields an EngineFailure."""


@runtime_checkable
class RoundActor(Actor, Protocol):
    """An actor that changes from round to round."""

    def begin_round(self, num_updates: int) -> None:
        """A round of play begins after this many optimizer updates."""


@dataclass(frozen=True)
class EngineActor:
    """Samples from one engine.

    Attributes:
        engine: the model.
        renderer: reads its token ids.
        sampling: temperature and reply limit.
        name: recorded as the turn's actor.
    """

    engine: Engine
    renderer: Renderer
    sampling: SamplingParams
    name: str = "student"

    def act(self, requests: Sequence[Request]) -> list[Answer | EngineFailure]:
        prompts = [request.prompt_ids for request in requests]
        results = self.engine.generate(prompts, self.sampling, [request.seed for request in requests])
        answers: list[Answer | EngineFailure] = []
        for result in results:
            if isinstance(result, EngineFailure):
                answers.append(result)
            else:
                response = self.renderer.response(result.ids, result.logprobs, result.is_complete)
                answers.append(Answer(response, self.name))
        return answers
