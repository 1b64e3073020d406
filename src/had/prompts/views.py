"""The two views of one history as chat messages: with and without the harness text, all else equal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from had.prompts.parse import parse_action
from had.records import ParseFailure

Message = dict[str, str]

SYSTEM = (
    "You act in a text world to complete a task. Reply with exactly two lines:\n"
    "Thought: <brief reasoning>\n"
    "Action: <one command>\n"
    "Choose exactly one of the listed commands and copy it literally, names and numbers included. "
    "Give one command at a time. `Nothing happens.` means that the last command had no effect."
)
NO_COMMAND_OBSERVATION = (
    "No command was found in the reply. Reply with a line `Thought:` and a line `Action:`."
)
BLOCKED_OBSERVATION = "The command was not executed: {reason}."


class View(StrEnum):
    """A rendering of a history."""

    WITH_HARNESS = "with_harness"
    WITHOUT_HARNESS = "without_harness"


class ShownTurn(Protocol):
    """What a prompt needs of a turn; `records.Turn` has it."""

    @property
    def observation(self) -> str: ...
    @property
    def commands(self) -> tuple[str, ...]: ...
    @property
    def harness_text(self) -> str: ...


class PastTurn(ShownTurn, Protocol):
    """A turn that was answered."""

    @property
    def reply(self) -> str: ...


@dataclass(frozen=True)
class Shown:
    """The state that is to be answered now."""

    observation: str
    commands: tuple[str, ...]
    harness_text: str
    reply: str = ""


@dataclass(frozen=True)
class PromptFormat:
    """How a history becomes messages.

    The system message holds the instructions and the task; then come the turns of the history, and last the
    current observation, the harness text, and the admissible commands, in this order.

    Attributes:
        system: the instructions.
        history_turns: how many past turns are kept: None for all, or the last k.
        history_replies: `whole` shows past replies as they were; `action` shows the line of the command only
            (a small model copies its last thought instead of thinking), or the whole reply if it has none.
        harness_in_history: `last` shows the harness text of the current turn only; `all` that of every turn.
        task_line: field goal.
        commands_header: stands above the list of admissible commands, one a line.
        bullet: stands before each admissible command.
        restate_task: the task line stands once more at the very end, in both views; a small model then finds
            it at a fixed distance.
    """

    system: str = SYSTEM
    history_turns: int | None = None
    history_replies: str = "whole"
    harness_in_history: str = "last"
    task_line: str = "Your task is to: {goal}"
    commands_header: str = "Admissible commands:"
    bullet: str = ""
    restate_task: bool = False

    def __post_init__(self) -> None:
        if self.history_turns is not None and self.history_turns < 0:
            raise ValueError(f"prompt.history_turns: expected null (all) or >= 0, got {self.history_turns}")
        if self.history_replies not in ("whole", "action"):
            raise ValueError(
                f"prompt.history_replies: expected 'whole' or 'action', got {self.history_replies!r}"
            )
        if self.harness_in_history not in ("last", "all"):
            raise ValueError(
                f"prompt.harness_in_history: expected 'last' or 'all', got {self.harness_in_history!r}"
            )

    def messages(self, goal: str, past: Sequence[PastTurn], now: ShownTurn, view: View) -> list[Message]:
        """The chat messages of one state in one view.

        Args:
            goal: the task text.
            past: the answered turns, oldest first.
            now: the state to answer.
            view: whether harness text is shown.
        """
        kept = past if self.history_turns is None else past[max(0, len(past) - self.history_turns) :]
        messages = [{"role": "system", "content": f"{self.system}\n\n{self.task_line.format(goal=goal)}"}]
        with_past = view is View.WITH_HARNESS and self.harness_in_history == "all"
        for turn in kept:
            shown = [turn.observation, turn.harness_text] if with_past else [turn.observation]
            messages.append({"role": "user", "content": _paragraphs(shown)})
            reply = turn.reply if self.history_replies == "whole" else _action_line(turn.reply)
            messages.append({"role": "assistant", "content": reply})
        shown = [now.observation, now.harness_text] if view is View.WITH_HARNESS else [now.observation]
        if now.commands:
            lines = [f"{self.bullet}{command}" for command in now.commands]
            shown.append("\n".join([self.commands_header, *lines]))
        if self.restate_task:
            shown.append(self.task_line.format(goal=goal))
        messages.append({"role": "user", "content": _paragraphs(shown)})
        return messages


def _action_line(reply: str) -> str:
    parsed = parse_action(reply)
    return reply if isinstance(parsed, ParseFailure) else f"Action: {parsed.action}"


def _paragraphs(texts: Sequence[str]) -> str:
    return "\n".join(text for text in texts if text)


def drop_oldest_turn(messages: list[Message]) -> list[Message] | None:
    """The same messages without the oldest turn of the history; None when only task and state are left."""
    return None if len(messages) <= 2 else [messages[0], *messages[3:]]
