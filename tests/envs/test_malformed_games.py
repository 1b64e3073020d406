"""Damaged game files among good ones, in real pools: one failed episode each, and the others play on."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from had.envs.alfworld.simulator import NativeEnv
from had.envs.base import EnvFailure, EnvPool
from had.envs.household.source import HouseholdTasks
from had.envs.pool import SerialPool, WorkerPool
from had.records import EnvStep, Task
from malformed_games import DAMAGES, damage

TEXTWORLD = pytest.param(
    "textworld",
    marks=pytest.mark.skipif(
        any(find_spec(name) is None for name in ("textworld", "alfworld")),
        reason="needs textworld and alfworld (pip install -e .)",
    ),
)


def make_pool(backend: str) -> EnvPool:
    """As configs/env chooses: the simulator here, the engine in workers."""
    if backend == "native":
        return SerialPool(NativeEnv, len(DAMAGES) + 1)
    from had.envs.alfworld.textworld_env import TextWorldEnv

    return WorkerPool(TextWorldEnv, num_workers=1, num_slots=len(DAMAGES) + 1)


@pytest.fixture
def games(tmp_path: Path) -> Iterator[list[Task]]:
    """A good game, and one of every damage."""
    tasks = []
    source = Path(HouseholdTasks(num_train=100, cache_dir=tmp_path).tasks("train")[0].source)
    for number, name in enumerate(["", *DAMAGES]):
        path = tmp_path / f"{number}.tw-pddl"
        shutil.copyfile(source, path)
        if name:
            damage(path, name)
        tasks.append(Task(name or "good", "train", "any", "", str(path)))
    yield tasks


@pytest.mark.parametrize("backend", ["native", TEXTWORLD])
def test_each_costs_its_own_episode_and_is_named(games: list[Task], backend: str) -> None:
    pool = make_pool(backend)
    try:
        answers = pool.reset(dict(enumerate(games)))
        first = answers.pop(0)
        assert isinstance(first, EnvStep)
        for slot, failure in answers.items():
            task, message = games[slot], str(failure)
            assert isinstance(failure, EnvFailure), task.id
            assert task.source in message and DAMAGES[task.id][1] in message, (task.id, message)
            assert "alfworld-download" in message and "generated" in message, message
            answer = pool.step({slot: "look"})[slot]
            assert isinstance(answer, EnvFailure) and "reset it first" in str(answer)
        assert isinstance(pool.step({0: first.commands[0]})[0], EnvStep)  # the good one goes on
        replayed = pool.reset({slot: games[0] for slot in (1, len(DAMAGES))})
        assert all(answer == first for answer in replayed.values())  # and so do spoilt slots
    finally:
        pool.close()
