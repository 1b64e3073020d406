"""A person's session: the pages are the model's prompts, and lines do what the help says."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from char_tokenizer import CharTokenizer
from had.envs.alfworld.grammar import HouseholdGrammar
from had.envs.base import EnvFailure
from had.envs.pool import SerialPool
from had.harness.conditions import get_condition
from had.prompts.views import PromptFormat, View
from had.records import EnvStep, Task
from had.rollout.person import REPLY, Page, PersonSession, chosen_views, message_page, token_page
from had.rollout.player import Player
from scripted_actors import ScriptedActor, char_renderer
from tiny_world import SOLUTION, TinyWorld, quick_harness, tiny_task

TASKS = [tiny_task("a"), tiny_task("b", goal="do something else.")]
MAX_TURNS = 6


class FragileWorld(TinyWorld):
    def reset(self, task: Task) -> EnvStep:
        if task.source == "missing":
            raise EnvFailure("no such file")
        return super().reset(task)

    def step(self, command: str) -> EnvStep:
        if command == "crash":
            raise EnvFailure("the world ended")
        return super().step(command)


def session_output(
    *lines: str,
    view: str = "with_harness",
    page: Page | None = None,
    condition: str = "full",
    tasks: Sequence[Task] = TASKS,
) -> list[str]:
    """What a session writes, one text per call."""
    waiting, written = list(lines), []

    def read(prompt: str) -> str:
        if not waiting:
            raise EOFError
        return waiting.pop(0)

    session = PersonSession(
        env=FragileWorld(),
        tasks=tasks,
        grammar=HouseholdGrammar(),
        harness=quick_harness(),
        condition=get_condition(condition),
        max_turns=MAX_TURNS,
        page=page or message_page(PromptFormat()),
        view=view,
        seed=5,
        read=read,
        write=written.append,
    )
    session.run()
    assert not waiting or ":quit" in lines
    return written


def played_by_a_model(commands: Sequence[str]) -> list[str]:
    """The prompts that a model with the same replies reads."""
    player = Player(SerialPool(TinyWorld, 1), HouseholdGrammar(), quick_harness(), char_renderer(), MAX_TURNS)
    actor = ScriptedActor({TASKS[0].id: [REPLY.format(command=command) for command in commands]})
    (episode,) = player.play(TASKS[:1], actor, seed=5)
    return [CharTokenizer().decode(turn.prompt_ids) for turn in episode.turns]


def test_a_person_reads_exactly_what_the_model_reads() -> None:
    commands = ("go to cabinet 1", "sing", "sing", "look", "go to countertop 1", "look")
    written = session_output(*commands, page=token_page(char_renderer()))
    prompts = played_by_a_model(commands)
    assert len(prompts) == MAX_TURNS
    assert [text for text in written if text.startswith("<system>")] == prompts


def test_both_views_are_shown_and_only_one_has_harness_text() -> None:
    written = session_output("look", view="both")
    titles = [text.strip("\n= ") for text in written if "=====" in text and "turn" in text]
    assert titles == [f"{view.value}, turn {turn} of 6" for turn in (1, 2) for view in View]
    pages = [text for text in written if text.startswith("[system]")]
    assert [("isited" in page) for page in pages] == [True, False, True, False]


def test_commands_by_number_and_by_text_win_the_game() -> None:
    written = session_output("2", SOLUTION[1], "1", "open cabinet 1", SOLUTION[4])
    assert "The game is over: won after 5 turns." in written[-1]
    assert "You move the apple 1." in written[-1]


def test_the_game_ends_after_its_last_turn_and_another_can_be_started() -> None:
    written = session_output(*["look"] * 6, "look", ":task 2", "1")
    text = "\n".join(written)
    assert "The game is over: out_of_turns after 6 turns." in text
    assert "No game is running" in text
    assert "Task 2 of 2: tiny/b" in text and "do something else." in written[-2]


def test_quit_ends_at_once_and_so_does_the_end_of_the_input() -> None:
    assert session_output(":quit", "look") == session_output()


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("5", "command: expected a number from 1 to 4, got 5"),
        ("0", "command: expected a number from 1 to 4, got 0"),
        (":task 3", "task: expected a number from 1 to 2, got 3"),
        (":task x", "':task x' is not known. Type a command"),
        (":help", "':help' is not known. Type a command"),
        (":view none", "view: expected one of with_harness, without_harness, both, got 'none'"),
    ],
)
def test_lines_that_do_nothing_use_up_no_turn(line: str, message: str) -> None:
    written = session_output(line, "", "  ", "look")
    assert any(text.startswith(message) for text in written)
    assert any("turn 2 of 6" in text for text in written) and not any("turn 3" in text for text in written)


def test_the_view_can_be_changed_in_the_middle() -> None:
    written = session_output("look", ":view without_harness")
    assert written[-3].strip() == "===== without_harness, turn 2 of 6 ====="
    assert "isited" not in written[-2]


def test_hard_block_tells_a_person_what_it_tells_the_model() -> None:
    written = session_output("sing", condition="hard_block")
    assert "The command was not executed: it is not among the admissible commands." in written[-2]


def test_failures_of_the_world_end_the_game_and_not_the_session() -> None:
    tasks = [tiny_task("a", source="missing"), tiny_task("b")]
    written = session_output(":task 2", "crash", ":task 2", "look", tasks=tasks)
    text = "\n".join(written)
    assert "The game cannot be started: no such file" in text and "The game failed: the world ended" in text
    assert "turn 2 of 6" in text


def test_a_prompt_that_is_too_long_for_the_model_is_told() -> None:
    written = session_output(page=token_page(char_renderer(max_prompt_tokens=10)))
    assert any("the model would get no prompt" in text for text in written)


def test_view_names() -> None:
    assert chosen_views("both") == tuple(View)
    assert chosen_views("without_harness") == (View.WITHOUT_HARNESS,)
