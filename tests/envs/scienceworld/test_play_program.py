"""`src/play.py` with the laboratory, and the goal that only the started world knows."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from had.envs.scienceworld.grammar import ScienceWorldGrammar
from had.harness.compose import Harness
from had.harness.conditions import FULL
from had.records import Response, Task
from had.rollout.actor import Answer
from had.rollout.game import Game

PROGRAM = Path(__file__).parents[3] / "src" / "play.py"

pytestmark = pytest.mark.java


def test_a_person_plays(java: None, tmp_path: Path) -> None:
    command = [sys.executable, str(PROGRAM), f"hydra.run.dir={tmp_path}", "env=scienceworld_small"]
    command += ["harness=scienceworld", "prompt=scienceworld", "split=test", "task=31"]
    lines = "teleport to kitchen\nget orange\n0\n:quit\n"
    result = subprocess.run(command, input=lines, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert "Task 31 of 149: scienceworld/test/boil/22" in result.stdout
    assert "Your task is to: boil " in result.stdout
    assert "You are in the " in result.stdout or "Room: " in result.stdout or "In the " in result.stdout
    assert result.stdout.count("turn 4 of 15") == 1


def test_a_game_takes_its_goal_from_the_started_world_and_learns_what_was_available(env: Any) -> None:
    task = Task("t", "train", "boil", "", "boil/0")
    game = Game(task, 0, 15, Harness(), FULL, ScienceWorldGrammar())
    game.start(env.reset(task))
    assert game.task.goal.startswith("boil water.")
    for command in ("open door to kitchen", "open unicorn", "fly"):
        response = Response((), (), "", True, command)
        game.executed(env.step(str(game.answer((), game.shown(), Answer(response)))))
    assert [turn.is_available for turn in game.turns] == [True, False, False]
    assert [turn.is_in_grammar for turn in game.turns] == [True, True, False]
