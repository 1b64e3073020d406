"""Many text worlds at once: `SerialPool` in this process, `WorkerPool` in processes that may hang or die."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping
from multiprocessing.connection import wait
from typing import Any, TypeVar

from had.envs.base import EnvFailure, TextEnv
from had.envs.slots import Answers, Slots
from had.envs.worker_process import WorkerProcess
from had.records import EnvStep, Task

_MAX_FAILED_STARTS = 3

_T = TypeVar("_T")
_log = logging.getLogger(__name__)


class SerialPool:
    """An `EnvPool` in this process: right where a step costs less than a message, as in the native simulator.

    It cannot interrupt an environment that hangs. Raises ValueError when num_slots is below 1.
    """

    def __init__(self, make_env: Callable[[], TextEnv], num_slots: int) -> None:
        if num_slots < 1:
            raise ValueError(f"num_slots must be at least 1, got {num_slots}")
        self._num_slots = num_slots
        self._slots = Slots(make_env)

    @property
    def num_slots(self) -> int:
        return self._num_slots

    def reset(self, tasks: dict[int, Task]) -> dict[int, EnvStep | EnvFailure]:
        return self._slots.reset(_in_range(tasks, self._num_slots))

    def step(self, commands: dict[int, str]) -> dict[int, EnvStep | EnvFailure]:
        return self._slots.step(_in_range(commands, self._num_slots))

    def close(self) -> None:
        self._slots.close()


class WorkerPool:
    """An `EnvPool` of processes; one that hangs or dies is replaced and its slots get an EnvFailure.

    Args:
        make_env: makes one environment; must be picklable: a class of an importable module, or a
            functools.partial of one.
        num_workers: processes; slot i lives in worker i % num_workers.
        num_slots: episodes played at once.
        timeout_s: seconds that a worker may take to answer one call, for all its slots together.
        max_episodes_per_worker: after so many episodes a worker takes no new one and ends when its last has
            ended, for backends that leak; None: never.

    Attributes:
        num_replaced: workers that hung or died so far.

    Raises:
        ValueError: a number is out of range.
        RuntimeError: from reset, when make_env fails or workers die before their first answer.
    """

    def __init__(
        self,
        make_env: Callable[[], TextEnv],
        num_workers: int,
        num_slots: int,
        timeout_s: float = 60.0,
        max_episodes_per_worker: int | None = None,
    ) -> None:
        if not 1 <= num_workers <= num_slots:
            raise ValueError(f"expected 1 <= num_workers <= num_slots, got {num_workers} and {num_slots}")
        if timeout_s <= 0 or (max_episodes_per_worker is not None and max_episodes_per_worker < 1):
            raise ValueError(
                "expected timeout_s > 0 and max_episodes_per_worker >= 1 or None, "
                f"got {timeout_s} and {max_episodes_per_worker}"
            )
        self._make_env = make_env
        self._num_slots = num_slots
        self._timeout_s = timeout_s
        self._max_episodes = max_episodes_per_worker
        self._workers: set[WorkerProcess] = set()
        self._newest: list[WorkerProcess | None] = [None] * num_workers
        self._worker_of: dict[int, WorkerProcess] = {}
        self._lost: dict[int, EnvFailure] = {}
        self._num_failed_starts = 0
        self.num_replaced = 0

    @property
    def num_slots(self) -> int:
        return self._num_slots

    @property
    def worker_pids(self) -> tuple[int, ...]:
        """The process ids of the workers that take new episodes."""
        return tuple(worker.pid for worker in self._newest if worker is not None)

    def reset(self, tasks: dict[int, Task]) -> dict[int, EnvStep | EnvFailure]:
        for slot in _in_range(tasks, self._num_slots):
            worker = self._worker_for_new_episode(slot % len(self._newest))
            worker.num_episodes += 1
            self._worker_of[slot] = worker
            self._lost.pop(slot, None)
        self._stop_unused()
        return self._call("reset", tasks)

    def step(self, commands: dict[int, str]) -> dict[int, EnvStep | EnvFailure]:
        return self._call("step", _in_range(commands, self._num_slots))

    def close(self) -> None:
        self._worker_of.clear()
        self._newest = [None] * len(self._newest)
        self._stop_unused()

    def _worker_for_new_episode(self, index: int) -> WorkerProcess:
        """The newest worker of a group, or a new one where there is none or where it is spent."""
        worker = self._newest[index]
        if worker is None or (self._max_episodes is not None and worker.num_episodes >= self._max_episodes):
            worker = self._newest[index] = WorkerProcess(self._make_env)
            self._workers.add(worker)
        return worker

    def _stop_unused(self) -> None:
        """End the spent workers whose last episode has ended."""
        unused = self._workers - {*self._worker_of.values(), *self._newest}
        for worker in unused:
            worker.stop()
        self._workers -= unused

    def _call(self, method: str, arguments: Mapping[int, Any]) -> Answers:
        answers: Answers = {}
        batches: dict[WorkerProcess, dict[int, Any]] = {}
        for slot, argument in arguments.items():
            if slot in self._worker_of:
                batches.setdefault(self._worker_of[slot], {})[slot] = argument
            else:
                failure = EnvFailure(f"slot {slot} plays no episode; reset it first")
                answers[slot] = self._lost.get(slot, failure)
        for worker, batch in batches.items():
            worker.send(method, batch, self._timeout_s)
        try:
            for worker, message in self._collect(set(batches)):
                if isinstance(message, EnvFailure):
                    answers.update(dict.fromkeys(batches[worker], message))
                else:
                    answers.update(message)
        except BaseException:
            self.close()  # answers still under way would be taken for those of the next call
            raise
        return {slot: answers[slot] for slot in arguments}

    def _collect(self, pending: set[WorkerProcess]) -> Iterable[tuple[WorkerProcess, Answers | EnvFailure]]:
        """Wait until every pending worker has answered, died, or let its time pass."""
        while pending:
            left = min(worker.deadline for worker in pending) - time.monotonic()
            wait([worker.connection for worker in pending], max(left, 0.0))
            for worker in list(pending):
                try:
                    message = worker.receive(self._timeout_s)
                except EnvFailure as failure:
                    pending.discard(worker)
                    yield worker, self._replace(worker, failure)
                else:
                    if message is not None:
                        self._num_failed_starts = 0
                        pending.discard(worker)
                        yield worker, message

    def _replace(self, worker: WorkerProcess, failure: EnvFailure) -> EnvFailure:
        """Give up a worker and the episodes in it; the next reset of its slots starts a new one."""
        worker.kill()
        self._workers.discard(worker)
        self.num_replaced += 1
        _log.warning("%s; it is replaced", failure)
        for slot in [slot for slot, home in self._worker_of.items() if home is worker]:
            del self._worker_of[slot]
            self._lost[slot] = failure
        self._newest = [None if newest is worker else newest for newest in self._newest]
        if not worker.is_ready:
            self._num_failed_starts += 1
            if self._num_failed_starts >= _MAX_FAILED_STARTS:
                raise RuntimeError(
                    f"{self._num_failed_starts} workers in a row failed before they could play: {failure}. "
                    "Their own messages are on stderr; make one environment in a Python shell to see why"
                )
        return failure


def _in_range(by_slot: dict[int, _T], num_slots: int) -> dict[int, _T]:
    wrong = [slot for slot in by_slot if not 0 <= slot < num_slots]
    if wrong:
        raise ValueError(f"slots {wrong} do not exist; this pool has the slots 0 to {num_slots - 1}")
    return by_slot
