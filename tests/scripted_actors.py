"""Actors without a model: one follows a script, one answers at random, both read prompts and seeds only."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from char_tokenizer import END_IDS, CharTokenizer, listed_commands, reply_ids
from had.engines.base import EngineFailure
from had.prompts.render import Renderer
from had.prompts.response import read_response
from had.prompts.views import PromptFormat
from had.rollout.actor import Answer, Request

REFUSED = ("open fridge 99", "sing", "move pan 7 to shelf 7")
UNPARSABLE = ("", "I do not know.", "Thought: hm\nAction:", "Action: look\nAction: help")
Reply = str | EngineFailure


def char_renderer(prompt: PromptFormat | None = None, max_prompt_tokens: int = 10**6) -> Renderer:
    return Renderer(CharTokenizer(), prompt or PromptFormat(), max_prompt_tokens, END_IDS)


def two_lines(command: str, thought: str = "I go on.") -> str:
    return f"Thought: {thought}\nAction: {command}"


def answer(reply: Reply, actor: str = "student") -> Answer | EngineFailure:
    if isinstance(reply, EngineFailure):
        return reply
    ids = reply_ids(reply)
    return Answer(read_response(ids, [-1.0] * len(ids), True, CharTokenizer(), END_IDS), actor)


@dataclass
class ScriptedActor:
    """Says, at every turn of a task, the next reply of its script, and then the last one for ever.

    Attributes:
        scripts: task id -> replies; a text without a line break is a command.
        batches: the requests of every call.
    """

    scripts: Mapping[str, Sequence[Reply]]
    batches: list[list[Request]] = field(default_factory=list)

    def act(self, requests: Sequence[Request]) -> list[Answer | EngineFailure]:
        self.batches.append(list(requests))
        return [answer(self._reply(request)) for request in requests]

    def _reply(self, request: Request) -> Reply:
        script = self.scripts[request.task_id]
        reply = script[min(request.turn, len(script) - 1)]
        is_command = isinstance(reply, str) and reply and "\n" not in reply
        return two_lines(str(reply)) if is_command else reply


class RandomActor:
    """Answers with a listed, a refused, an idle or no command, by the seed of the request."""

    def act(self, requests: Sequence[Request]) -> list[Answer | EngineFailure]:
        return [answer(self._reply(request)) for request in requests]

    def _reply(self, request: Request) -> str:
        rng = random.Random(request.seed)
        share = rng.random()
        if share < 0.1:
            return rng.choice(UNPARSABLE)
        if share < 0.3:
            return two_lines(rng.choice(REFUSED))
        if share < 0.45:
            return two_lines("look")
        return two_lines(rng.choice(listed_commands(request.prompt_ids)))
