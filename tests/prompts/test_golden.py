"""A golden page per situation of the harness: what the model reads, in both views.

After a wanted change of wording: `UPDATE_GOLDEN=1 pytest tests/prompts/test_golden.py`, then read the diff.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import pytest

from had.envs.alfworld.grammar import HouseholdGrammar
from had.harness.conditions import FULL
from had.prompts.views import Message, PromptFormat, View
from had.records import HarnessReport
from had.rollout.actor import Answer
from had.rollout.game import Game
from scripted_actors import answer, two_lines
from tiny_world import TinyWorld, quick_harness, tiny_task

GOLDEN = Path(__file__).parent / "golden"
NO_WARNING = HarnessReport()
TAKE = "take apple 1 from countertop 1"
IN_VAIN = "take apple 1 from cabinet 1"


@dataclass(frozen=True)
class Situation:
    """How a page comes about.

    Attributes:
        commands: what the agent did.
        report: the warnings that must be in force.
        max_turns: turns of the episode.
        seed: of the wording.
    """

    commands: tuple[str, ...]
    report: HarnessReport = NO_WARNING
    max_turns: int = 20
    seed: int = 0


SITUATIONS = {
    "start": Situation(()),
    "closed_place": Situation(("go to cabinet 1",), seed=1),
    "holding": Situation(("go to countertop 1", TAKE), seed=2),
    "revisit": Situation(("go to cabinet 1", "look", "go to sinkbasin 1", "go to cabinet 1"), seed=3),
    "failure": Situation(("go to cabinet 1", IN_VAIN, IN_VAIN), HarnessReport(failures=(IN_VAIN,))),
    "stall": Situation(
        ("go to countertop 1", "look", "look", "look"), HarnessReport(is_stalled=True), seed=1
    ),
    "urge": Situation(("go to cabinet 1", "open cabinet 1"), HarnessReport(is_urged=True), 5, 2),
    "all_together": Situation(
        ("go to countertop 1", TAKE, "go to cabinet 1", "go to countertop 1", "look", IN_VAIN, IN_VAIN),
        HarnessReport(is_urged=True, failures=(IN_VAIN,), is_stalled=True),
        max_turns=9,
        seed=3,
    ),
}


def act(game: Game, world: TinyWorld, command: str) -> None:
    given = answer(two_lines(command))
    assert isinstance(given, Answer)
    assert game.answer((), game.shown(), given) == command
    game.executed(world.step(command))


def play(situation: Situation) -> tuple[Game, TinyWorld]:
    world, task = TinyWorld(), tiny_task()
    game = Game(task, situation.seed, situation.max_turns, quick_harness(), FULL, HouseholdGrammar())
    game.start(world.reset(task))
    for command in situation.commands:
        act(game, world, command)
    return game, world


def page(messages: list[Message]) -> str:
    return "".join(f"[{message['role']}]\n{message['content']}\n" for message in messages)


def both_views(game: Game) -> str:
    prompt = PromptFormat()
    pages = [
        f"=== {view.value} ===\n{page(prompt.messages(game.task.goal, game.turns, game.shown(), view))}"
        for view in View
    ]
    return "\n".join(pages)


@pytest.mark.parametrize("name", SITUATIONS)
def test_page(name: str) -> None:
    text = both_views(play(SITUATIONS[name])[0])
    path = GOLDEN / f"{name}.txt"
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8"), f"see the docstring of {__file__}"


@pytest.mark.parametrize("name", SITUATIONS)
def test_the_situation_is_what_its_name_says(name: str) -> None:
    game, world = play(SITUATIONS[name])
    act(game, world, "look")
    turn = game.turns[-1]
    assert turn.report == SITUATIONS[name].report
    assert bool(turn.facts.earlier_visits) == (name in ("revisit", "all_together"))
    assert bool(turn.facts.held) == (name in ("holding", "all_together"))


def test_every_page_belongs_to_a_situation() -> None:
    assert {path.stem for path in GOLDEN.glob("*.txt")} == set(SITUATIONS)
