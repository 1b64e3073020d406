"""The messages of a view: order, window, where the harness text stands, and wrong settings."""

from __future__ import annotations

import pytest

from had.prompts.views import PromptFormat, Shown, View, drop_oldest_turn

PAST = [Shown(f"saw {n}", ("a", "b"), f"HARNESS {n}", f"Action: do {n}") for n in range(4)]
NOW = Shown("see now", ("look", "go"), "HARNESS NOW")
WITH, WITHOUT = View.WITH_HARNESS, View.WITHOUT_HARNESS


def contents(prompt: PromptFormat, view: View, past: list[Shown] = PAST, now: Shown = NOW) -> list[str]:
    return [message["content"] for message in prompt.messages("win {it}", past, now, view)]


def test_order_of_a_page() -> None:
    messages = PromptFormat().messages("win.", PAST, NOW, WITH)
    assert [message["role"] for message in messages] == ["system", *["user", "assistant"] * 4, "user"]
    assert messages[0]["content"].endswith("\n\nYour task is to: win.")
    assert messages[1]["content"] == "saw 0" and messages[2]["content"] == "Action: do 0"
    assert messages[-1]["content"] == "see now\nHARNESS NOW\nAdmissible commands:\nlook\ngo"


def test_the_goal_may_hold_braces() -> None:
    assert contents(PromptFormat(), WITH)[0].endswith("win {it}")


@pytest.mark.parametrize(("window", "first"), [(None, 0), (0, 4), (1, 3), (2, 2), (4, 0), (9, 0)])
def test_window(window: int | None, first: int) -> None:
    texts = contents(PromptFormat(history_turns=window), WITH)
    assert texts[1:-1] == [text for n in range(first, 4) for text in (f"saw {n}", f"Action: do {n}")]


def test_harness_text_of_earlier_turns_only_with_all_and_only_in_its_own_view() -> None:
    all_turns = PromptFormat(harness_in_history="all")
    assert contents(all_turns, WITH)[1] == "saw 0\nHARNESS 0"
    assert not any("HARNESS" in text for text in contents(all_turns, WITHOUT))
    assert contents(all_turns, WITHOUT) == contents(PromptFormat(), WITHOUT)
    assert sum("HARNESS" in text for text in contents(PromptFormat(), WITH)) == 1


def test_without_harness_text_the_views_are_the_same() -> None:
    silent = Shown(NOW.observation, NOW.commands, "")
    assert contents(PromptFormat(), WITH, now=silent) == contents(PromptFormat(), WITHOUT, now=silent)


def test_an_environment_without_a_command_list_gets_no_empty_list() -> None:
    assert contents(PromptFormat(), WITH, now=Shown("see now", (), "HARNESS"))[-1] == "see now\nHARNESS"


def test_dropping_turns_ends_with_the_task_and_the_state() -> None:
    messages = PromptFormat().messages("win.", PAST, NOW, WITH)
    dropped = 0
    while (fewer := drop_oldest_turn(messages)) is not None:
        assert (fewer[0], fewer[-1]) == (messages[0], messages[-1])
        messages, dropped = fewer, dropped + 1
    assert dropped == 4 and len(messages) == 2


def test_wrong_settings() -> None:
    with pytest.raises(ValueError, match=r"history_turns: expected null \(all\) or >= 0, got -1"):
        PromptFormat(history_turns=-1)
    with pytest.raises(ValueError, match=r"harness_in_history: expected 'last' or 'all', got 'none'"):
        PromptFormat(harness_in_history="none")


def test_past_replies_can_be_shown_as_their_commands_only() -> None:
    turns = [
        Shown("A", (), "", "Thought: why\nAction: **open box**"),
        Shown("B", (), "", "I have no idea"),
    ]
    shown = PromptFormat(history_replies="action").messages("g", turns, Shown("C", (), ""), WITH)
    assert [message["content"] for message in shown if message["role"] == "assistant"] == [
        "Action: open box",
        "I have no idea",
    ]


def test_an_unknown_way_to_show_replies_is_refused() -> None:
    with pytest.raises(ValueError, match=r"history_replies: expected 'whole' or 'action', got 'all'"):
        PromptFormat(history_replies="all")
