"""A pool whose workers are really killed and really stopped while a run collects."""

from __future__ import annotations

import os
import signal
from typing import Any

from had.envs.base import EnvFailure
from had.envs.pool import WorkerPool
from had.records import EnvStep, Task

Answers = dict[int, EnvStep | EnvFailure]
KILLED_IN, STOPPED_IN, TURN = 0, 1, 2  # rounds, counted from 0; the turn in them


class FailingPool(WorkerPool):
    """Kills its first worker in one round of collection, and stops its last one in another.

    The signals come from outside of the worker, as those of a person or of the kernel.
    """

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._round = self._turn = -1

    def reset(self, tasks: dict[int, Task]) -> Answers:
        if any(task.split == "train" for task in tasks.values()):
            self._round, self._turn = self._round + 1, 0
        return super().reset(tasks)

    def step(self, commands: dict[int, str]) -> Answers:
        if self._turn == TURN and self._round == KILLED_IN:
            os.kill(self.worker_pids[0], signal.SIGKILL)
        if self._turn == TURN and self._round == STOPPED_IN:
            os.kill(self.worker_pids[-1], signal.SIGSTOP)
        self._turn += self._turn >= 0
        return super().step(commands)
