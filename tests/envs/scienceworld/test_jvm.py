"""One Java machine per process, with a limit, which ends with whoever started it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from processes import gone, jvms_below, resident_mb

from had.envs.base import EnvFailure
from had.envs.pool import WorkerPool
from had.envs.scienceworld.tasks import ScienceWorldTasks
from had.records import EnvStep

pytestmark = pytest.mark.java

LONG_S = 120.0


@pytest.fixture
def make_env(java: None) -> Any:
    from had.envs.scienceworld.env import ScienceWorldEnv

    return ScienceWorldEnv


def test_environments_of_a_process_share_a_jvm_with_a_limit(make_env: Any) -> None:
    before = jvms_below(os.getpid())
    envs = [make_env(heap_mb=256), make_env(heap_mb=256)]
    (pid,) = set(jvms_below(os.getpid())) - set(before)
    assert b"-Xmx256m" in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    first, second = (
        env.reset(task) for env, task in zip(envs, ScienceWorldTasks().tasks("test"), strict=False)
    )
    assert "boil lead" in first.goal and "melt" in second.goal
    envs[0].close()
    assert envs[1].step("inventory").observation.startswith("In your inventory")
    envs[1].close()
    assert gone([pid])


def test_a_users_memory_options_have_the_last_word(java: None, monkeypatch: pytest.MonkeyPatch) -> None:
    from had.envs.scienceworld.jvm import java_options

    monkeypatch.setenv("JAVA_TOOL_OPTIONS", "-Dproxy=none -Xmx300m -Xms64m")
    assert java_options(512)[0] == "-Xmx512m" and java_options(512)[-2:] == ["-Xmx300m", "-Xms64m"]


def test_a_jvm_that_does_not_start_says_why(java: None, monkeypatch: pytest.MonkeyPatch) -> None:
    from had.envs.scienceworld.jvm import Jvm

    monkeypatch.setenv("JAVA_TOOL_OPTIONS", "-Xmxtoomuch")
    with pytest.raises(RuntimeError, match=r"(?s)did not start.*Invalid maximum heap size: -Xmxtoomuch"):
        Jvm(256)


def test_a_killed_worker_takes_its_jvm_along(make_env: Any) -> None:
    pool = WorkerPool(make_env, num_workers=1, num_slots=2, timeout_s=LONG_S)
    try:
        tasks = dict(enumerate(ScienceWorldTasks().tasks("test")[:2]))
        pool.reset(tasks)
        (worker,) = pool.worker_pids
        (jvm,) = jvms_below(worker)
        os.kill(worker, signal.SIGKILL)
        assert isinstance(pool.step({0: "look around"})[0], EnvFailure)
        assert gone([jvm])
        assert all(isinstance(answer, EnvStep) for answer in pool.reset(tasks).values())
        (jvm,) = jvms_below(pool.worker_pids[0])
    finally:
        pool.close()
    assert gone([jvm])


PARENT = """
import sys
from had.envs.pool import WorkerPool
from had.envs.scienceworld.env import ScienceWorldEnv
from had.envs.scienceworld.tasks import ScienceWorldTasks
pool = WorkerPool(ScienceWorldEnv, 2, 4, 120.0)
pool.reset(dict(enumerate(ScienceWorldTasks().tasks("test")[:4])))
print("playing", flush=True)
while True:
    pool.step(dict.fromkeys(range(4), "wait1"))
"""


def test_no_jvm_outlives_a_killed_parent(java: None) -> None:
    parent = subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    assert parent.stdout.readline() == "playing\n"
    jvms = jvms_below(parent.pid)
    assert len(jvms) == 2
    parent.kill()
    parent.wait()
    parent.stdout.close()
    assert gone(jvms)


@pytest.mark.slow
def test_three_hundred_episodes_in_two_workers(make_env: Any) -> None:
    """Flat memory of both workers and both JVMs; no failed episode."""
    pool = WorkerPool(make_env, num_workers=2, num_slots=4, timeout_s=LONG_S)
    tasks = ScienceWorldTasks().tasks("train")[:300]
    commands = (
        "look around",
        "inventory",
        "teleport to kitchen",
        "open fridge",
        "pick up orange",
        "wait1",
        "fly",
    )
    sizes: list[list[float]] = []
    failures = 0
    try:
        for first in range(0, 300, 4):
            answers = pool.reset(dict(enumerate(tasks[first : first + 4])))
            for turn in range(15):
                playing = [slot for slot, a in answers.items() if isinstance(a, EnvStep) and not a.is_done]
                answers |= pool.step({slot: commands[(slot + turn) % len(commands)] for slot in playing})
            failures += sum(isinstance(answer, EnvFailure) for answer in answers.values())
            pids = [*pool.worker_pids, *(jvm for worker in pool.worker_pids for jvm in jvms_below(worker))]
            sizes.append([resident_mb(pid) for pid in pids])
        jvms = pids[2:]
        parts = {len(sizes) * share // 3: sizes[len(sizes) * share // 3 - 1] for share in (1, 2, 3)}
        print("MB of two workers and two JVMs after batches of four:", parts)
    finally:
        pool.close()
    assert failures == 0 and pool.num_replaced == 0
    assert len(jvms) == 2 and gone(jvms)
    for middle, last in zip(sizes[len(sizes) // 2][:2], sizes[-1][:2], strict=True):
        assert last - middle < 5
    assert max(sizes[-1][2:]) < 512 + 200  # the heap's limit and what a JVM needs besides
