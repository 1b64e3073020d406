"""The imitated player: reads every template goal, wins the small games, and loses its head when told to."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from had.envs.alfworld.simulator import NativeEnv
from had.envs.household.source import HouseholdTasks
from had.pretraining.disguise import disguise_text, draw_names
from had.pretraining.expert import Expert
from had.pretraining.goal import Goal, parse_goal
from had.pretraining.player import Habits
from had.records import Task


@pytest.mark.parametrize(
    ("text", "goal"),
    [
        ("put a clean mug in cabinet.", Goal("mug", "cabinet", "clean")),
        ("heat some egg and put it in diningtable", Goal("egg", "diningtable", "heat")),
        ("put a hot egg in fridge", Goal("egg", "fridge", "heat")),
        ("find two pen and put them in desk.", Goal("pen", "desk", count=2)),
        ("put some book on bed", Goal("book", "bed")),
        ("examine the cd with the desklamp", Goal("cd", "desklamp", is_lamp=True)),
    ],
)
def test_template_goals(text: str, goal: Goal) -> None:
    assert parse_goal(text) == goal


def test_a_human_sentence_is_refused() -> None:
    with pytest.raises(ValueError, match="template"):
        parse_goal("Bring me something warm to drink.")


def plays(task: Task, habits: Habits) -> bool:
    env, expert = NativeEnv(), Expert(habits, random.Random(0))
    step = env.reset(task)
    expert.start(task.goal, step)
    for _ in range(20):
        command = expert.decide().command
        step = env.step(command)
        expert.observe(command, step)
        if step.is_done:
            return step.is_won
    return False


def test_the_player_wins_the_small_games_and_a_careless_one_does_not(tmp_path: Path) -> None:
    tasks = HouseholdTasks(num_train=30, num_validation=30, cache_dir=str(tmp_path)).tasks("validation")
    good = sum(plays(task, Habits()) for task in tasks)
    careless = sum(plays(task, Habits(forgetfulness=1.0, carelessness=1.0)) for task in tasks)
    assert good == len(tasks)
    assert careless < len(tasks) / 2


def test_renaming_keeps_what_the_goal_and_the_commands_need() -> None:
    places = ["fridge 1", "shelf 1", "shelf 2", "cabinet 1"]
    known = [f"{kind} {i}" for kind in ("drawer", "desk", "cabinet", "fridge") for i in range(1, 5)]
    names = draw_names("put a cool egg in cabinet.", places, known, random.Random(0))
    assert set(names) == {"shelf 1", "shelf 2"}
    assert all(name.startswith(("drawer", "desk")) for name in names.values())
    text = disguise_text("go to shelf 1, shelf 2, fridge 1", names)
    assert text == f"go to {names['shelf 1']}, {names['shelf 2']}, fridge 1"
