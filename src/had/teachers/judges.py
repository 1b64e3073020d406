"""Judges of a turn after the environment's feedback: how much does it need the teacher's correction?"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from had.engines.base import SamplingParams
from had.envs.base import CommandGrammar
from had.harness.validity import check_command
from had.prompts.render import Renderer
from had.prompts.views import Message, View
from had.records import Verdict
from had.teachers.state import VisitedState
from had.teachers.teacher import Teacher

SYSTEM = (
    "You supervise a player of a text world. You read the task, the recent turns, what the player saw, its "
    "reply, and how the world answered. Say how much this reply needs your correction, in one word:\n"
    "Skip: you would have done the same, or something as good.\n"
    "Weak: it does no harm, but another command would have brought the task further.\n"
    "Strong: it is a mistake: an impossible command, a useless repetition, a step away from the goal."
)
QUESTION = "How much does the last reply need your correction? Answer with one word: Skip, Weak or Strong."
_ANSWER = re.compile(r"\b(skip|weak|strong)\b", re.IGNORECASE)


class Need(StrEnum):
    """How much a turn needs correction."""

    SKIP = "skip"
    WEAK = "weak"
    STRONG = "strong"


class Judge(Protocol):
    """Judges turns."""

    def __call__(self, teacher: Teacher, states: Sequence[VisitedState]) -> list[Need | None]:
        """One judgement per state; None where the teacher gave none that can be read."""


@dataclass(frozen=True)
class LanguageJudge:
    """Asks the teacher in words, greedily.

    Attributes:
        max_new_tokens: of the one-word answer.
    """

    max_new_tokens: int = 16

    def __call__(self, teacher: Teacher, states: Sequence[VisitedState]) -> list[Need | None]:
        chats = [judge_chat(teacher.renderer, state) for state in states]
        sampling = SamplingParams(0.0, self.max_new_tokens)
        replies = teacher.reply(chats, sampling, [state.seed for state in states])
        return [None if reply is None else read_need(reply) for reply in replies]


@dataclass(frozen=True)
class AgreementJudge:
    """For teachers that cannot judge in words: compares the player's action with the teacher's greedy one.

    The same action is `skip`, another valid one `weak`, an invalid or unparsable one `strong`.

    Attributes:
        grammar: of the environment's commands, for the validity check.
    """

    grammar: CommandGrammar

    def __call__(self, teacher: Teacher, states: Sequence[VisitedState]) -> list[Need | None]:
        answers = teacher.answer(states, View.WITH_HARNESS, salt=0, temperature=0.0)
        return [
            None if answer is None else self._need(state, answer.action)
            for state, answer in zip(states, answers, strict=True)
        ]

    def _need(self, state: VisitedState, wanted: str | None) -> Need:
        turn, action = state.turn, state.turn.response.action
        if action is not None and action == wanted:
            return Need.SKIP
        verdict = check_command(action, turn.commands, turn.facts, self.grammar)
        return Need.WEAK if verdict is Verdict.VALID else Need.STRONG


def read_need(reply: str) -> Need | None:
    """The judgement that a reply names, None when it names none or more than one."""
    found = {word.lower() for word in _ANSWER.findall(reply)}
    return Need(found.pop()) if len(found) == 1 else None


def judge_chat(renderer: Renderer, state: VisitedState) -> list[Message] | None:
    """The question about one turn, with as much of the history as there is room; None when there is none."""
    turns = state.episode.turns[: state.turn.index]
    past = [_block("Observation", turn.observation, turn.reply) for turn in turns]
    if renderer.format.history_turns is not None:
        past = past[max(0, len(past) - renderer.format.history_turns) :]
    turn = state.turn
    seen = "\n".join(part for part in (turn.observation, turn.harness_text, *turn.commands) if part)
    now = f"{_block('Observation', seen, turn.reply)}\nThe world answered:\n{turn.feedback}"
    for num_dropped in range(len(past) + 1):
        parts = [f"Task: {state.episode.task.goal}", *past[num_dropped:], now, QUESTION]
        chat = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": "\n\n".join(parts)}]
        if len(renderer.encode(chat)) <= renderer.max_prompt_tokens:
            return chat
    return None


def _block(title: str, seen: str, reply: str) -> str:
    return f"{title}:\n{seen}\nThe player replied:\n{reply}"
