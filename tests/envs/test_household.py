"""The generated household games: the same bytes everywhere, winnable, balanced, with rooms held out."""

from __future__ import annotations

import hashlib
import json
import random
from collections import Counter
from pathlib import Path

import pytest

from had.envs.alfworld.game import read_game
from had.envs.alfworld.simulator import NativeEnv
from had.envs.household.floor_plans import TRAIN, UNSEEN, load_floor_plan
from had.envs.household.generator import make_game
from had.envs.household.goals import TASK_TYPES, possible_goals
from had.envs.household.preset import FULL, SMALL, Preset, find_preset
from had.envs.household.source import HouseholdTasks
from had.records import Task

SPLITS = ("train", "validation", "seen", "unseen")
TYPES = {task.name for task in TASK_TYPES}
# ALFWorld's valid_unseen rooms.
ALFWORLD_UNSEEN = {10, 219, 308, 424}


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> HouseholdTasks:
    return HouseholdTasks("small", num_train=100, cache_dir=tmp_path_factory.mktemp("household"))


def _floor_plan(task: Task) -> str:
    details = json.loads(Path(task.source).with_name("traj_data.json").read_text())
    assert details["task_type"] == task.type
    return str(details["scene"]["floor_plan"])


def _digest(data: object) -> str:
    return hashlib.sha256(json.dumps(data).encode()).hexdigest()[:16]


@pytest.mark.parametrize(
    ("preset", "split", "index", "digest"),
    [
        (SMALL, "train", 0, "4d9c78fe3f85e84a"),
        (SMALL, "unseen", 5, "27f384a12cd4d0c9"),
        (FULL, "train", 19_999, "f85248b66cd2c7ba"),
        (FULL, "seen", 3, "5232df70b0c71e26"),
    ],
)
def test_the_bytes_of_a_game_never_change(preset: Preset, split: str, index: int, digest: str) -> None:
    game = make_game(preset, 0, split, index)
    # Without the domain and the grammar, which are the installed package's.
    assert _digest([game.data["pddl_problem"], game.goal, game.data["walkthrough"]]) == digest, (
        "generated games changed: raise FORMAT in had/envs/household/cache.py and pin the new digest here"
    )


def test_seeds_splits_and_presets_give_different_games() -> None:
    variants = [(SMALL, 0, "train"), (SMALL, 1, "train"), (SMALL, 0, "seen"), (FULL, 0, "train")]
    assert (
        len({make_game(*variant, 0).data["pddl_problem"].split("(:objects")[1] for variant in variants}) == 4
    )


@pytest.mark.parametrize("split", SPLITS)
def test_every_split_has_all_types_in_turn(source: HouseholdTasks, split: str) -> None:
    tasks = source.tasks(split)
    counts = Counter(task.type for task in tasks)
    assert len(tasks) == 100
    assert set(counts) == TYPES
    assert max(counts.values()) - min(counts.values()) <= 1
    assert [task.id for task in tasks[:2]] == [f"household/small/{split}/0000{index}" for index in (0, 1)]


def test_unseen_rooms_are_never_trained_on(source: HouseholdTasks) -> None:
    unseen = {_floor_plan(task) for task in source.tasks("unseen")}
    others = {_floor_plan(task) for split in ("train", "validation", "seen") for task in source.tasks(split)}
    assert not unseen & others
    assert not set(TRAIN) & set(UNSEEN)
    assert set(UNSEEN) > ALFWORLD_UNSEEN


def test_no_game_occurs_twice(source: HouseholdTasks) -> None:
    starts = [
        read_game(task.source).facts["inreceptacle"] for split in SPLITS for task in source.tasks(split)
    ]
    assert len({str(sorted(start)) for start in starts}) == len(starts)


def test_small_games_are_won_by_their_walkthrough(source: HouseholdTasks) -> None:
    env = NativeEnv()
    for task in source.tasks("train"):
        game = read_game(task.source)
        step = env.reset(task)
        assert not step.is_won
        assert SMALL.min_places <= len(step.state.places) <= SMALL.max_places
        assert len(game.facts["objecttype"]) <= SMALL.max_objects
        assert game.goal_sentence == task.goal
        assert len(game.walkthrough) <= 20
        for command in game.walkthrough:
            assert not step.is_won
            assert command in step.commands
            step = env.step(command)
        assert step.is_won


def test_full_games_have_every_place_of_their_floor_plan() -> None:
    for index in range(12):
        game = make_game(FULL, 0, "unseen", index)
        places = load_floor_plan(game.floor_plan).places
        init = str(game.data["pddl_problem"]).split("(:goal")[0]
        assert init.count("(receptacleAtLocation ") == len(places)


def test_the_counts_of_a_real_kitchen() -> None:
    # ALFWorld's own games in floor plan 5 have the same 39.
    counts = Counter(place.type for place in load_floor_plan(5).places)
    assert sum(counts.values()) == 39
    assert counts["StoveBurner"] == 4
    assert counts["SinkBasin"] == counts["Fridge"] == counts["Microwave"] == counts["CoffeeMachine"] == 1


def test_every_floor_plan_can_be_played() -> None:
    for number in (*TRAIN, *UNSEEN):
        plan = load_floor_plan(number)
        assert len(plan.places) >= SMALL.min_places
        assert len({place.id for place in plan.places}) == len(plan.places)
        assert not {place.location for place in plan.places} & set(plan.free_locations)
        assert possible_goals(plan, TASK_TYPES[0])


def test_a_preset_of_ones_own() -> None:
    tiny = Preset("tiny", min_places=4, max_places=4, min_objects=4, max_objects=6, max_copies=2)
    for index in range(60):
        problem = str(make_game(tiny, 3, "train", index).data["pddl_problem"]).split("(:goal")[0]
        assert problem.count("(receptacleAtLocation ") == 4
        assert problem.count("(objectType ") <= 6


def test_faults_are_explained() -> None:
    with pytest.raises(ValueError, match="known: small, full"):
        find_preset("medium")
    with pytest.raises(ValueError, match="max_places"):
        Preset("odd", min_places=8, max_places=6, min_objects=4, max_objects=4)
    with pytest.raises(ValueError, match="num_train"):
        HouseholdTasks(num_train=-1)
    with pytest.raises(ValueError, match="known: train, validation, seen, unseen"):
        HouseholdTasks().tasks("valid_seen")


def test_the_engine_plays_the_same_games(source: HouseholdTasks) -> None:
    textworld_env = pytest.importorskip("had.envs.alfworld.textworld_env")
    engine, native = textworld_env.TextWorldEnv(), NativeEnv()
    rng = random.Random(0)
    for task in source.tasks("unseen")[: len(TASK_TYPES)]:
        game = read_game(task.source)
        step, expected = engine.reset(task), native.reset(task)
        assert step == expected
        for planned in game.walkthrough:
            looks = [command for command in expected.commands if command.startswith("examine ")]
            for command in (rng.choice(["help", "look", "inventory", "open fridge 9", *looks]), planned):
                step, expected = engine.step(command), native.step(command)
                assert step == expected, f"{task.id}: {command!r}"
        assert step.is_won
    engine.close()
