"""The command grammar of ALFWorld-format games."""

from __future__ import annotations

from pathlib import Path

import pytest

from had.envs.alfworld.game import read_game
from had.envs.alfworld.grammar import HouseholdGrammar
from had.envs.alfworld.simulator import NativeEnv

GRAMMAR = HouseholdGrammar()


@pytest.mark.parametrize(
    "command",
    [
        *("look", "inventory", "help", "go to desk 1", "open fridge 1", "close drawer 12", "use desklamp 1"),
        *("examine side table 2", "take mug 1 from desk 1", "move mug 1 to desk 2"),
        "heat egg 1 with microwave 1",
        *("cool egg 1 with fridge 1", "clean egg 1 with sinkbasin 1", "slice apple 1 with knife 2"),
    ],
)
def test_forms_of_the_environment_are_accepted(command: str) -> None:
    assert GRAMMAR.accepts(command)


@pytest.mark.parametrize(
    "command",
    [
        *("", "Look", "look around", "go desk 1", "go to desk", "go to 1", "open the door"),
        "take mug from desk 1",
        *("put mug 1 in/on desk 1", "move mug 1 to desk", "heat egg 1", "go to desk 1\n"),
        "go to desk 1 then open",
    ],
)
def test_other_texts_are_not(command: str) -> None:
    assert not GRAMMAR.accepts(command)
    assert GRAMMAR.required_object(command) is None
    assert not GRAMMAR.is_idle(command)


@pytest.mark.parametrize(
    ("command", "needed"),
    [
        ("move mug 1 to desk 2", "mug 1"),
        ("heat egg 1 with microwave 1", "egg 1"),
        ("cool egg 2 with fridge 1", "egg 2"),
        ("clean soap bar 1 with sinkbasin 1", "soap bar 1"),
        ("slice apple 1 with knife 2", "knife 2"),
        ("take mug 1 from desk 1", None),
        ("use desklamp 1", None),
    ],
)
def test_the_object_that_must_be_held(command: str, needed: str | None) -> None:
    assert GRAMMAR.required_object(command) == needed


def test_idle_commands() -> None:
    assert all(GRAMMAR.is_idle(command) for command in ("look", "inventory", "help", "examine mug 1"))
    assert not any(GRAMMAR.is_idle(command) for command in ("go to desk 1", "use lamp 1", "examine"))


@pytest.mark.alfworld_data
def test_every_admissible_command_of_real_games_is_in_the_grammar(
    alfworld_games: dict[str, list[Path]],
) -> None:
    env = NativeEnv()
    for path in alfworld_games["valid_unseen"]:
        game = read_game(path)
        answers = [env.reset_game(game), *(env.step(command) for command in game.walkthrough)]
        refused = {
            command for answer in answers for command in answer.commands if not GRAMMAR.accepts(command)
        }
        assert not refused, path
