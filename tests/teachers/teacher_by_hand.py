"""Episodes written by hand and a teacher whose engine answers what it is told to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from char_tokenizer import CharTokenizer, reply_ids
from had.engines.base import EngineFailure, Generation, SamplingParams
from had.prompts.views import PromptFormat
from had.records import (
    CompactScores,
    Episode,
    EpisodeStatus,
    HarnessFacts,
    HarnessReport,
    Response,
    Task,
    TopKScores,
    Turn,
)
from had.teachers.state import VisitedState, visited_states
from had.teachers.teacher import Teacher
from scripted_actors import char_renderer, two_lines

COMMANDS = ("go to shelf 1", "take mug 1 from shelf 1", "look")
FACTS = HarnessFacts(1, 9, None, (), ("shelf 1",), (), None, 0, (), (("open safe 1", 1),), 0)
Reply = str | EngineFailure


def response(text: str) -> Response:
    renderer = char_renderer()
    ids = reply_ids(text)
    return renderer.response(ids, (-0.1,) * len(ids), True)


def turn(index: int, reply: str, actor: str = "student") -> Turn:
    return Turn(
        index=index,
        observation=f"You see turn {index}.",
        commands=COMMANDS,
        facts=FACTS,
        report=HarnessReport(),
        harness_text=f"Harness of turn {index}.",
        prompt_ids=(1, 2, 3),
        response=response(reply),
        actor=actor,
        feedback=f"Answer to turn {index}.",
    )


def states_of(*replies: str, actors: Sequence[str] = ()) -> list[VisitedState]:
    actors = actors or ["student"] * len(replies)
    turns = tuple(turn(i, reply, actor) for i, (reply, actor) in enumerate(zip(replies, actors, strict=True)))
    task = Task("t", "train", "pick", "find the mug")
    return visited_states([Episode("e", task, turns, EpisodeStatus.OUT_OF_TURNS)], seed=3)


@dataclass
class FakeEngine:
    """Replies with `reply(prompt text, temperature)`; every token has log-probability `-0.25`.

    Attributes:
        reply: what to say.
        prompts: texts of everything that was asked.
    """

    reply: Callable[[str, float], Reply] = lambda text, temperature: two_lines("look")
    max_context_tokens: int = 10**6
    prompts: list[str] = field(default_factory=list)

    def generate(
        self, prompts: Sequence[Sequence[int]], params: SamplingParams, seeds: Sequence[int]
    ) -> list[Generation | EngineFailure]:
        texts = [CharTokenizer().decode(prompt) for prompt in prompts]
        self.prompts += texts
        replies = [self.reply(text, params.temperature) for text in texts]
        return [
            reply
            if isinstance(reply, EngineFailure)
            else Generation(reply_ids(reply), (-0.1,) * (len(reply) + 1), True)
            for reply in replies
        ]

    def score(
        self, prompts: Sequence[Sequence[int]], responses: Sequence[Sequence[int]], top_k: int
    ) -> list[TopKScores]:
        row = tuple(-0.25 - k for k in range(top_k))
        return [TopKScores((tuple(range(top_k)),) * len(r), (row,) * len(r)) for r in responses]

    def logprobs(
        self, prompts: Sequence[Sequence[int]], responses: Sequence[Sequence[int]]
    ) -> list[tuple[float, ...]]:
        self.prompts += [CharTokenizer().decode(prompt) for prompt in prompts]
        return [(-0.25,) * len(response) for response in responses]


def teacher_of(engine: FakeEngine, prompt: PromptFormat | None = None, max_prompt: int = 10**6) -> Teacher:
    return Teacher(engine, char_renderer(prompt, max_prompt), SamplingParams(1.0, 32))  # type: ignore[arg-type]


def scores_of(*best: float) -> CompactScores:
    """Top-2 scores whose first entries are these log-probabilities."""
    return CompactScores.of(TopKScores(((7, 8),) * len(best), tuple((value, -9.0) for value in best)))
