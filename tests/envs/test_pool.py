"""Pools of text worlds, with workers that are really killed and really hang."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from unruly_env import DeadlyMaker, UnrulyEnv

from had.envs.alfworld.simulator import NativeEnv
from had.envs.base import EnvFailure, EnvPool
from had.envs.pool import SerialPool, WorkerPool
from had.records import EnvStep, Task

SHORT_S = 2.0
LONG_S = 60.0


def _task(name: str, goal: str = "") -> Task:
    return Task(name, "train", "any", goal)


def _tasks(pool: EnvPool, name: str = "t") -> dict[int, Task]:
    return {slot: _task(f"{name}{slot}") for slot in range(pool.num_slots)}


def _observation(answer: EnvStep | EnvFailure) -> str:
    assert isinstance(answer, EnvStep), answer
    return answer.observation


@pytest.fixture
def pool() -> Iterator[WorkerPool]:
    """Slots 0 and 2 live in one worker, 1 and 3 in the other."""
    pool = WorkerPool(UnrulyEnv, num_workers=2, num_slots=4, timeout_s=LONG_S)
    yield pool
    pool.close()


@pytest.fixture(params=["serial", "workers"])
def any_pool(request: pytest.FixtureRequest) -> Iterator[EnvPool]:
    make = partial(UnrulyEnv, word="hello")
    pool = SerialPool(make, 3) if request.param == "serial" else WorkerPool(make, 2, 3, LONG_S)
    yield pool
    pool.close()


def test_each_slot_plays_its_own_episode(any_pool: EnvPool) -> None:
    answers = any_pool.reset(_tasks(any_pool))
    assert [_observation(answer) for answer in answers.values()] == ["hello t0", "hello t1", "hello t2"]
    any_pool.step({0: "a", 2: "b"})
    answers = any_pool.step({2: "c", 1: "d"})
    assert {slot: _observation(answer) for slot, answer in answers.items()} == {2: "c 2", 1: "d 1"}
    assert any_pool.step({}) == {}


@pytest.mark.parametrize("trouble", ["crash", "fail"])
def test_an_exception_costs_one_slot_its_episode(any_pool: EnvPool, trouble: str) -> None:
    any_pool.reset(_tasks(any_pool))
    answers = any_pool.step({0: trouble, 1: "a", 2: "b"})
    assert isinstance(answers[0], EnvFailure)
    assert [_observation(answers[slot]) for slot in (1, 2)] == ["a 1", "b 1"]
    again = any_pool.step({0: "a"})[0]
    assert isinstance(again, EnvFailure) and "reset it first" in str(again)
    assert _observation(any_pool.reset({0: _task("new")})[0]) == "hello new"
    failed = any_pool.reset({0: _task("bad", trouble), 1: _task("good")})
    assert isinstance(failed[0], EnvFailure) and _observation(failed[1]) == "hello good"


def test_an_environment_that_cannot_be_made_stops_the_run() -> None:
    with pytest.raises(ValueError, match="cannot be made"):
        SerialPool(partial(UnrulyEnv, "impossible"), 1).reset({0: _task("t")})
    pool = WorkerPool(partial(UnrulyEnv, "impossible"), 1, 1, LONG_S)
    with pytest.raises(RuntimeError, match=r"(?s)cannot be made in a worker.*ValueError: this environment"):
        pool.reset({0: _task("t")})
    assert pool.worker_pids == ()


def test_a_worker_that_dies_by_itself_is_replaced_and_the_other_goes_on(pool: WorkerPool) -> None:
    pool.reset(_tasks(pool))
    answers = pool.step({0: "die", 1: "a", 2: "b", 3: "c"})
    for slot in (0, 2):
        assert isinstance(answers[slot], EnvFailure) and "exit status -9" in str(answers[slot])
    assert [_observation(answers[slot]) for slot in (1, 3)] == ["a 1", "c 1"]
    assert pool.num_replaced == 1
    assert _observation(pool.reset({0: _task("new")})[0]) == "fine new"
    lost = pool.step({2: "a"})[2]
    assert isinstance(lost, EnvFailure) and "exit status -9" in str(lost)  # its episode died with the worker
    assert _observation(pool.step({3: "d"})[3]) == "d 2"


def test_a_worker_killed_from_outside_costs_only_its_slots(pool: WorkerPool) -> None:
    pool.reset(_tasks(pool))
    first, second = pool.worker_pids
    os.kill(first, signal.SIGKILL)
    answers = pool.step(dict.fromkeys(range(4), "a"))
    assert [isinstance(answers[slot], EnvFailure) for slot in range(4)] == [True, False, True, False]
    answers = pool.reset(_tasks(pool, "again"))
    assert [_observation(answers[slot]) for slot in range(4)] == [f"fine again{slot}" for slot in range(4)]
    assert first not in pool.worker_pids and second in pool.worker_pids


@pytest.mark.parametrize("where", ["step", "reset", "stopped"])
def test_a_worker_that_hangs_is_killed_and_replaced(where: str) -> None:
    pool = WorkerPool(UnrulyEnv, num_workers=2, num_slots=2, timeout_s=SHORT_S)
    try:
        pool.reset(_tasks(pool))
        pid = int(_observation(pool.step({0: "pid"})[0]))
        if where == "stopped":
            os.kill(pid, signal.SIGSTOP)
        if where == "reset":
            answers = pool.reset({0: _task("t", "hang"), 1: _task("t")})
        else:
            answers = pool.step({0: "hang" if where == "step" else "a", 1: "a"})
        assert isinstance(answers[0], EnvFailure) and "did not answer within 2 s" in str(answers[0])
        assert isinstance(answers[1], EnvStep)
        assert not _is_alive(pid)
        assert isinstance(pool.reset({0: _task("new")})[0], EnvStep)
    finally:
        pool.close()


def test_workers_that_never_start_stop_the_run() -> None:
    pool = WorkerPool(DeadlyMaker(), num_workers=1, num_slots=1, timeout_s=LONG_S)
    for _ in range(2):
        answer = pool.reset({0: _task("t")})[0]
        assert isinstance(answer, EnvFailure) and "exit status 3" in str(answer)
    with pytest.raises(RuntimeError, match="3 workers in a row failed before they could play"):
        pool.reset({0: _task("t")})


def test_spent_workers_leave_when_their_last_episode_has_ended() -> None:
    pool = WorkerPool(UnrulyEnv, num_workers=1, num_slots=2, timeout_s=LONG_S, max_episodes_per_worker=3)
    try:
        pool.reset(_tasks(pool))
        pool.reset({0: _task("third")})
        (old,) = pool.worker_pids
        pool.reset({0: _task("fourth")})
        (new,) = pool.worker_pids
        assert new != old
        pids = {slot: int(_observation(answer)) for slot, answer in pool.step({0: "pid", 1: "pid"}).items()}
        assert pids == {0: new, 1: old}  # slot 1 still plays its first episode in the old worker
        pool.reset({1: _task("fifth")})
        assert not _is_alive(old)
        assert pool.num_replaced == 0
    finally:
        pool.close()


def test_workers_do_not_import_torch(pool: WorkerPool) -> None:
    pool.reset({0: _task("t")})
    modules = _observation(pool.step({0: "modules"})[0]).split()
    assert "had.envs.base" in modules
    assert not {"torch", "lightning", "transformers", "hydra"} & set(modules)


def test_close_ends_all_workers_and_may_be_called_twice(pool: WorkerPool) -> None:
    pool.reset(_tasks(pool))
    pids = pool.worker_pids
    pool.close()
    pool.close()
    assert not any(_is_alive(pid) for pid in pids)


def test_workers_die_with_a_killed_parent_even_when_they_hang() -> None:
    script = """
import sys, threading
from had.envs.pool import WorkerPool
from had.records import Task
from unruly_env import UnrulyEnv
pool = WorkerPool(UnrulyEnv, 2, 2, 3600.0)
pool.reset({0: Task("t", "train", "any", ""), 1: Task("t", "train", "any", "")})
print(*pool.worker_pids, flush=True)
pool.step({0: "hang"})
"""
    paths = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    parent = subprocess.Popen(
        [sys.executable, "-c", script],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": paths},
    )
    assert parent.stdout is not None
    pids = [int(word) for word in parent.stdout.readline().split()]
    assert len(pids) == 2 and all(_is_alive(pid) for pid in pids)
    parent.kill()
    parent.wait()
    parent.stdout.close()
    deadline = time.monotonic() + LONG_S
    while any(_is_alive(pid) for pid in pids) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not any(_is_alive(pid) for pid in pids)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((UnrulyEnv, 0, 1), "num_workers"),
        ((UnrulyEnv, 3, 2), "num_workers <= num_slots"),
        ((UnrulyEnv, 1, 1, 0.0), "timeout_s"),
        ((UnrulyEnv, 1, 1, 1.0, 0), "max_episodes_per_worker"),
    ],
)
def test_numbers_out_of_range(arguments: tuple, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        WorkerPool(*arguments)


def test_a_slot_that_does_not_exist(any_pool: EnvPool) -> None:
    with pytest.raises(ValueError, match=r"slots \[3\] do not exist; this pool has the slots 0 to 2"):
        any_pool.step({3: "a"})


@pytest.mark.alfworld_data
def test_a_thousand_episodes_with_killed_workers(alfworld_games: dict[str, list[Path]]) -> None:
    """Flat memory here and in the worker that lives on; every failure is explained by a kill."""
    num_slots, num_episodes, episodes_per_kill = 8, 1000, 160
    pool = WorkerPool(NativeEnv, num_workers=2, num_slots=num_slots, timeout_s=LONG_S)
    paths = alfworld_games["train"]
    num_played = num_failed = num_kills = 0
    sizes: list[tuple[int, int]] = []
    try:
        while num_played < num_episodes:
            sources = [str(paths[(num_played + slot) * 3 % len(paths)]) for slot in range(num_slots)]
            answers = pool.reset({slot: Task(s, "train", "any", "", s) for slot, s in enumerate(sources)})
            victim, survivor = pool.worker_pids
            for turn in range(10):
                if turn == 5 and num_played % episodes_per_kill == 0:
                    os.kill(victim, signal.SIGKILL)
                    num_kills += 1
                living = {slot: answer for slot, answer in answers.items() if isinstance(answer, EnvStep)}
                answers |= pool.step({slot: a.commands[turn % len(a.commands)] for slot, a in living.items()})
            num_played += num_slots
            num_failed += sum(isinstance(answer, EnvFailure) for answer in answers.values())
            sizes.append((_resident_kb(os.getpid()), _resident_kb(survivor)))
    finally:
        pool.close()
    assert num_kills >= 6
    assert num_failed == num_kills * num_slots // 2
    assert pool.num_replaced == num_kills
    middle, last = sizes[len(sizes) // 2], sizes[-1]
    for before_kb, after_kb in zip(middle, last, strict=True):
        assert after_kb - before_kb < 3_000, sizes


def _is_alive(pid: int) -> bool:
    """True while a process runs; a zombie has ended."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def _resident_kb(pid: int) -> int:
    """Memory of a process, in kB."""
    (line,) = [
        line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmRSS")
    ]
    return int(line.split()[1])
