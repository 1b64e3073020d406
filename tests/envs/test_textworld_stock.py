"""`TextWorldEnv` against the engine exactly as the packages ship it: remembering changes no answer."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
import textworld
from alfworld.agents.environment.alfred_tw_env import AlfredDemangler
from textworld.envs.pddl import PddlEnv
from tiny_game import GOALS, write_tiny_game

from had.envs.alfworld.textworld_env import TextWorldEnv
from had.records import EnvStep, Task


@pytest.fixture(scope="module")
def stock() -> Any:
    return AlfredDemangler(PddlEnv(textworld.EnvInfos(admissible_commands=True, won=True)))


@pytest.fixture(scope="module")
def env() -> TextWorldEnv:
    return TextWorldEnv()


def _is_same(step: EnvStep, state: Any, text: str) -> bool:
    expected = (text, tuple(state["admissible_commands"]), bool(state["won"]))
    return (step.observation, step.commands, step.is_won) == expected


def _compare(stock: Any, env: TextWorldEnv, task: Task, num_steps: int) -> None:
    rng = random.Random(0)
    stock.load(task.source)
    state = stock.reset()
    step = env.reset(task)
    banner, room, goal = state.feedback.split("\n\n")
    assert banner == "-= Welcome to TextWorld, ALFRED! =-"
    assert goal.startswith("Your task is to: ")
    assert _is_same(step, state, room)
    for _ in range(num_steps):
        command = rng.choice([*step.commands, "go to shelf 99"])
        state, reward, is_done = stock.step(command)
        step = env.step(command)
        assert _is_same(step, state, state.feedback), command
        assert (step.reward, step.is_done) == (float(reward), is_done)


@pytest.mark.parametrize("task_type", list(GOALS))
def test_same_answers_on_the_tiny_game(stock: Any, env: TextWorldEnv, tmp_path: Path, task_type: str) -> None:
    _compare(stock, env, write_tiny_game(tmp_path, task_type), num_steps=40)


@pytest.mark.alfworld_data
def test_same_answers_on_real_games(
    stock: Any, env: TextWorldEnv, alfworld_games: dict[str, list[Path]]
) -> None:
    for path in alfworld_games["valid_unseen"][::45]:
        _compare(stock, env, Task(str(path), "any", "any", "", str(path)), num_steps=15)
