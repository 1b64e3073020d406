"""Finding the command: the plain case, the odd ones, and anything at all without raising."""

from __future__ import annotations

import random

import pytest

from had.prompts.parse import ParsedAction, parse_action
from had.records import ParseFailure

COMMAND = "go to drawer 5"


@pytest.mark.parametrize(
    "text",
    [
        f"Thought: I search.\nAction: {COMMAND}",
        f"Thought: I search.\nAction: {COMMAND}\n",
        f"Thought: I search.\nAction: {COMMAND}\nThat is all.",
        f"Action: {COMMAND}",
        f"Action:{COMMAND}",
        f"action : {COMMAND}  ",
        f"ACTION:\t{COMMAND}\r\nmore",
        f"**Thought:** I search.\n**Action:** {COMMAND}",
        f"Thought: x\n**Action: {COMMAND}**",
        f"Thought: x\n- Action: `{COMMAND}`",
        f"> Thought: x\n> Action: {COMMAND}",
        f"## Action: '{COMMAND}'",
        f'Action: "{COMMAND}"',
        f"```\nThought: x\nAction: {COMMAND}\n```",
        f"<think>Action: look\nAction: help</think>\nThought: x\nAction: {COMMAND}",
        f"<think>a</think><think>Action: look</think>\n\nAction: {COMMAND}",
        f"the Action: of this\nin action: too\nAction: {COMMAND}",
        f"Reaction: none\nAction: {COMMAND}",
    ],
)
def test_found(text: str) -> None:
    parsed = parse_action(text)
    assert isinstance(parsed, ParsedAction)
    assert parsed.action == COMMAND == text[parsed.start : parsed.end]
    assert text[: parsed.marker_end].rstrip("*_`").endswith(":")
    assert parsed.marker_end <= parsed.start


@pytest.mark.parametrize(
    ("text", "failure"),
    [
        ("", ParseFailure.EMPTY),
        (" \n\t\r\n", ParseFailure.EMPTY),
        ("I go to the drawer.", ParseFailure.NO_ACTION),
        ("Thought: Action: look", ParseFailure.NO_ACTION),
        ("Handlung: look", ParseFailure.NO_ACTION),
        ("Action look", ParseFailure.NO_ACTION),
        ("Action: look</think>", ParseFailure.NO_ACTION),
        ("Action:", ParseFailure.EMPTY_ACTION),
        ("Action:\nlook", ParseFailure.EMPTY_ACTION),
        ("Thought: x\nAction: `` \n", ParseFailure.EMPTY_ACTION),
        ("Action: look\nAction: look", ParseFailure.SEVERAL_ACTIONS),
        ("Thought: x\nAction: look\n\n**Action:** help", ParseFailure.SEVERAL_ACTIONS),
        ("Action:\nAction: help", ParseFailure.SEVERAL_ACTIONS),
    ],
)
def test_not_found(text: str, failure: ParseFailure) -> None:
    assert parse_action(text) is failure


def test_a_command_keeps_its_own_letters_and_inner_marks() -> None:
    parsed = parse_action("Action: click[Größe: 42 | 黒_白] ")
    assert isinstance(parsed, ParsedAction) and parsed.action == "click[Größe: 42 | 黒_白]"


PIECES = (
    *("Thought:", "Action:", "action :", "**Action:**", "look", "go to drawer 5", "动作:看"),
    *("\n", "\n\n", "\r", " ", "\u2028", "\x00", "\ufffd", "🙂", "Действие: идти", "{", "}", "%s", "*" * 50),
    *("```", "`", "<think>", "</think>", "<|end|>"),
)


def odd_replies(count: int) -> list[str]:
    rng = random.Random(0)
    replies = ["x" * 10_000, "Action: " + "y" * 10_000, "\n" * 10_000, "*" * 10_000, "Action:\n" * 1_200]
    replies += [" " * 5_000 + "action" + " " * 5_000 + ":", "> " * 5_000 + "Action: look"]
    replies += ["".join(rng.choices(PIECES, k=rng.randint(0, 30))) for _ in range(count)]
    replies += ["".join(chr(rng.randint(0, 0xD7FF)) for _ in range(rng.randint(0, 60))) for _ in range(count)]
    return replies


def test_total() -> None:
    found = 0
    for text in odd_replies(2_000):
        parsed = parse_action(text)
        if isinstance(parsed, ParsedAction):
            found += 1
            assert parsed.action and "\n" not in parsed.action
            assert parsed.action == text[parsed.start : parsed.end]
            assert parsed.marker_end <= parsed.start < parsed.end <= len(text)
        else:
            assert isinstance(parsed, ParseFailure)
            assert (parsed is ParseFailure.EMPTY) == (not text.strip())
    assert found > 200
