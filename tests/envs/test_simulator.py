"""The native simulator on a hand-made game: known answers, and the same answers as the TextWorld engine."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from side_by_side import SideBySide
from tiny_game import GOALS, tiny_game, write_tiny_game

from had.envs.alfworld.simulator import NativeEnv
from had.envs.alfworld.textworld_env import TextWorldEnv
from had.envs.base import EnvFailure
from had.records import Effect, EnvState, Task

PLACES = ("countertop 2", "countertop 1", "drawer 1", "fridge 1", "microwave 1", "sinkbasin 1")
ROOM = ", ".join(f"a {place}" for place in PLACES[:-1]) + f", and a {PLACES[-1]}"

WINNING = {
    "pick_and_place_simple": [
        *("go to countertop 2", "take cup 1 from countertop 2", "go to drawer 1"),
        *("move cup 1 to drawer 1",),
    ],
    "pick_clean_then_place_in_recep": [
        *("go to sinkbasin 1", "take apple 1 from sinkbasin 1", "clean apple 1 with sinkbasin 1"),
        *("go to fridge 1", "open fridge 1", "move apple 1 to fridge 1"),
    ],
    "pick_heat_then_place_in_recep": [
        *("go to fridge 1", "open fridge 1", "take apple 2 from fridge 1", "go to microwave 1"),
        *("heat apple 2 with microwave 1", "move apple 2 to countertop 2"),
    ],
    "pick_cool_then_place_in_recep": [
        *("go to sinkbasin 1", "take apple 1 from sinkbasin 1", "go to fridge 1"),
        *("cool apple 1 with fridge 1", "go to microwave 1", "open microwave 1"),
        *("move apple 1 to microwave 1",),
    ],
    "pick_two_obj_and_place": [
        *("go to fridge 1", "open fridge 1", "take apple 2 from fridge 1", "go to sinkbasin 1"),
        *("move apple 2 to sinkbasin 1",),
    ],
    "look_at_obj_in_light": [
        *("go to countertop 2", "use desklamp 1", "take cup 1 from countertop 2"),
    ],
}


@pytest.fixture(scope="module")
def both() -> SideBySide:
    return SideBySide(TextWorldEnv(), NativeEnv())


@pytest.fixture
def env(tmp_path: Path) -> NativeEnv:
    env = NativeEnv()
    env.reset(write_tiny_game(tmp_path))
    return env


def test_reset_describes_the_room_without_banner_and_task(tmp_path: Path) -> None:
    step = NativeEnv().reset(write_tiny_game(tmp_path))
    assert step.observation == f"You are in the middle of a room. Looking quickly around you, you see {ROOM}."
    assert step.state == EnvState(None, (), PLACES)
    travels = [f"go to {place}" for place in PLACES]
    assert step.commands == tuple(sorted([*travels, "help", "inventory", "look"]))
    assert step.effect is Effect.CHANGED
    assert (step.reward, step.score, step.is_done, step.is_won) == (0.0, 0.0, False, False)


def test_commands_that_only_inform_and_refused_ones(env: NativeEnv) -> None:
    look = env.step("look")
    assert look.observation == "You are in the middle of a room. Looking quickly around you, you see nothing."
    assert look.effect is Effect.INFORMATIONAL
    assert env.step(" inventory ").observation == "You are not carrying anything."
    refused = env.step("open fridge 1")
    assert (refused.observation, refused.effect) == ("Nothing happens.", Effect.NO_EFFECT)
    assert refused.commands == look.commands


def test_going_to_a_place_that_shares_its_spot_with_the_present_one_is_refused(env: NativeEnv) -> None:
    step = env.step("go to microwave 1")
    assert step.observation == "You arrive at microwave 1. The microwave 1 is closed."
    assert step.state.location == "microwave 1"
    assert "go to countertop 2" not in step.commands
    assert env.step("go to microwave 1").effect is Effect.NO_EFFECT
    seen = env.step("examine countertop 2").observation
    assert seen == "On the countertop 2, you see a cup 1, and a desklamp 1."
    facing = "You are facing the countertop 2, and microwave 1. Next to it, you see nothing."
    assert env.step("look").observation == facing


def test_holding_and_moving(env: NativeEnv) -> None:
    env.step("go to countertop 2")
    taken = env.step("take cup 1 from countertop 2")
    assert taken.state.held == ("cup 1",)
    assert taken.effect is Effect.CHANGED
    assert not [command for command in taken.commands if command.startswith("take ")]
    assert env.step("examine cup 1").observation == "This is a normal cup 1. In it, you see a fork 1."
    assert env.step("inventory").observation == "You are carrying: a cup 1."
    assert env.step("use desklamp 1").effect is Effect.INFORMATIONAL
    env.step("go to drawer 1")
    won = env.step("move cup 1 to drawer 1")
    assert won.observation == "You move the cup 1 to the drawer 1."
    assert (won.reward, won.score, won.is_done, won.is_won) == (1.0, 100.0, True, True)


def test_an_apple_in_two_places_and_the_knife(env: NativeEnv) -> None:
    env.step("go to countertop 1")
    env.step("take apple 1 from countertop 1")
    assert env.step("examine sinkbasin 1").observation == "On the sinkbasin 1, you see a apple 1."
    env.step("clean apple 1 with sinkbasin 1")
    assert env.step("examine apple 1").observation == "This is a clean apple 1."
    env.step("move apple 1 to sinkbasin 1")
    beside = "You are facing the countertop 1, drawer 1, and sinkbasin 1. Next to it, you see a apple 1."
    assert env.step("look").observation == beside
    env.step("take knife 1 from countertop 1")
    sliced = env.step("slice apple 1 with knife 1")
    assert sliced.observation == "You sliced the apple 1 with the knife 1."
    assert "move knife 1 to drawer 1" in sliced.commands


@pytest.mark.parametrize("task_type", list(GOALS))
def test_same_answers_as_textworld(both: SideBySide, tmp_path: Path, task_type: str) -> None:
    task = write_tiny_game(tmp_path, task_type)
    _, is_won = both.play(task, WINNING[task_type], num_random=60, seed=1)
    assert is_won


def test_temperature_words_agree_with_textworld(both: SideBySide, tmp_path: Path) -> None:
    both.reset(write_tiny_game(tmp_path))
    for command in (
        *("go to fridge 1", "open fridge 1", "take apple 2 from fridge 1", "examine apple 2"),
        *("go to microwave 1", "heat apple 2 with microwave 1", "examine apple 2", "open microwave 1"),
        *("go to sinkbasin 1", "clean apple 2 with sinkbasin 1", "examine apple 2"),
        "move apple 2 to sinkbasin 1",
        *("take knife 1 from countertop 1", "slice apple 2 with knife 1", "move knife 1 to countertop 1"),
        *("take apple 2 from sinkbasin 1", "examine apple 2", "go to fridge 1", "cool apple 2 with fridge 1"),
        *("examine apple 2", "close fridge 1", "examine fridge 1", "help"),
    ):
        assert both.step(command).effect is not Effect.NO_EFFECT, command


def test_two_engines_in_one_process_do_not_disturb_each_other(both: SideBySide, tmp_path: Path) -> None:
    other = SideBySide(TextWorldEnv(), NativeEnv())
    (tmp_path / "other").mkdir()
    tasks = [write_tiny_game(tmp_path), write_tiny_game(tmp_path / "other", "look_at_obj_in_light")]
    both.reset(tasks[0])
    other.reset(tasks[1])
    for mine, theirs in zip(
        WINNING["pick_and_place_simple"], [*WINNING["look_at_obj_in_light"], "look"], strict=True
    ):
        both.step(mine)
        other.step(theirs)


def test_step_before_reset_is_a_failure() -> None:
    with pytest.raises(EnvFailure, match="before reset"):
        NativeEnv().step("look")


@pytest.mark.parametrize("env_class", [NativeEnv, TextWorldEnv])
def test_a_damaged_file_is_a_failure_in_both(tmp_path: Path, env_class: type) -> None:
    path = tmp_path / "game.tw-pddl"
    path.write_text('{"pddl_domain": "')
    with pytest.raises(EnvFailure, match=r"game\.tw-pddl is not JSON"):
        env_class().reset(Task("t", "train", "x", "y", str(path)))


def test_textworld_reports_a_fault_that_its_translator_finds(tmp_path: Path) -> None:
    game = tiny_game()
    game["pddl_problem"] = str(game["pddl_problem"]).replace("Apple_bar_1 - object", "Apple_bar_1 - planet")
    path = tmp_path / "game.tw-pddl"
    path.write_text(json.dumps(game))
    env = TextWorldEnv()
    with pytest.raises(EnvFailure, match="cannot be started by TextWorld"):
        env.reset(Task("t", "train", "x", "y", str(path)))
    assert env.reset(write_tiny_game(tmp_path)).commands  # and the engine still plays the next game


def test_games_of_an_older_alfworld_are_refused(tmp_path: Path) -> None:
    game = tiny_game()
    game["grammar"] = str(game["grammar"]).replace('"move {o} to {r}"', '"put {o} in/on {r}"')
    path = tmp_path / "game.tw-pddl"
    path.write_text(json.dumps(game))
    with pytest.raises(EnvFailure, match="older ALFWorld"):
        NativeEnv().reset(Task("t", "train", "x", "y", str(path)))
