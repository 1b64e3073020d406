"""Makes one game: the same arguments give the same bytes on every machine."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cache
from random import Random

from had.envs.alfworld.game import parse_game
from had.envs.alfworld.simulator import NativeEnv
from had.envs.household import floor_plans
from had.envs.household.floor_plans import FloorPlan, load_floor_plan
from had.envs.household.goals import TASK_TYPES, Goal, TaskType, possible_goals
from had.envs.household.pddl import game_data, write_problem
from had.envs.household.planner import plan_walkthrough
from had.envs.household.preset import Preset
from had.envs.household.rooms import furnish

# Floor plans by split; `seen` and `validation` are other games in the rooms of `train`.
SPLITS = {
    "train": floor_plans.TRAIN,
    "validation": floor_plans.TRAIN,
    "seen": floor_plans.TRAIN,
    "unseen": floor_plans.UNSEEN,
}
_MAX_ATTEMPTS = 100


@dataclass(frozen=True)
class GeneratedGame:
    """A game that its walkthrough has won.

    Attributes:
        id: task id, such as `household/small/train/00012`.
        floor_plan: the room it was made from.
        data: the JSON object of its game file.
    """

    id: str
    split: str
    type: str
    goal: str
    floor_plan: int
    data: dict[str, object]


def make_game(preset: Preset, seed: int, split: str, index: int) -> GeneratedGame:
    """Game number `index` of a split; it depends on nothing else, so longer splits begin the same."""
    rng = _random(preset, seed, split, index)
    task = TASK_TYPES[index % len(TASK_TYPES)]
    for _ in range(_MAX_ATTEMPTS):
        plan = load_floor_plan(rng.choice(_plans_for(task, SPLITS[split])))
        goals = possible_goals(plan, task)
        object_type = rng.choice(sorted(goals))
        goal = Goal(task, object_type, rng.choice(goals[object_type]), rng.randrange(2))
        room = furnish(plan, goal, preset, rng)
        if room is not None:
            break
    else:
        raise AssertionError(f"no room for {preset.name}/{split}/{index} in {_MAX_ATTEMPTS} attempts")
    name = f"household_{preset.name}_{split}_{index:05d}"
    walkthrough = plan_walkthrough(room, goal)
    data = game_data(write_problem(name, room, goal), goal.text, walkthrough)
    _prove(data, walkthrough, name)
    task_id = f"household/{preset.name}/{split}/{index:05d}"
    return GeneratedGame(task_id, split, task.name, goal.text, plan.number, data)


@cache
def _plans_for(task: TaskType, numbers: tuple[int, ...]) -> tuple[int, ...]:
    plans: Sequence[FloorPlan] = [load_floor_plan(number) for number in numbers]
    return tuple(plan.number for plan in plans if possible_goals(plan, task))


def _random(preset: Preset, seed: int, split: str, index: int) -> Random:
    """A generator of its own; Python's `hash` of a string differs from process to process."""
    key = json.dumps([asdict(preset), seed, split, index], sort_keys=True)
    return Random(int.from_bytes(hashlib.sha256(key.encode()).digest()[:8], "big"))


def _prove(data: dict[str, object], walkthrough: Sequence[str], name: str) -> None:
    """Play the walkthrough: every command must be possible, and the last one, no earlier one, must win."""
    env = NativeEnv()
    step = env.reset_game(parse_game(data, name))
    for command in walkthrough:
        assert not step.is_won, f"{name} is won before {command!r}"
        assert command in step.commands, f"{name}: {command!r} is not possible"
        step = env.step(command)
    assert step.is_won, f"{name} is not won by its walkthrough {walkthrough}"
