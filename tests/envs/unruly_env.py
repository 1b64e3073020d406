"""An environment that does to its worker whatever a command says."""

from __future__ import annotations

import os
import signal
import sys
import time

from had.envs.base import EnvFailure
from had.records import EnvState, EnvStep, Task


class UnrulyEnv:
    """A `TextEnv` that counts its steps and obeys `die`, `hang`, `crash`, `fail`, `pid` and `modules`."""

    def __init__(self, word: str = "fine") -> None:
        if word == "impossible":
            raise ValueError("this environment cannot be made")
        self._word = word
        self._num_steps = 0

    def reset(self, task: Task) -> EnvStep:
        self._num_steps = 0
        self._obey(task.goal)
        return self._answer(f"{self._word} {task.id}")

    def step(self, command: str) -> EnvStep:
        self._num_steps += 1
        self._obey(command)
        if command == "pid":
            return self._answer(str(os.getpid()))
        if command == "modules":
            return self._answer(" ".join(sys.modules))
        return self._answer(f"{command} {self._num_steps}")

    def close(self) -> None:
        pass

    def _obey(self, command: str) -> None:
        if command == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        if command == "hang":
            time.sleep(3600)
        if command == "crash":
            raise ZeroDivisionError("division by zero")
        if command == "fail":
            raise EnvFailure("the task cannot go on")

    def _answer(self, observation: str) -> EnvStep:
        return EnvStep(observation, ("die", "hang"), EnvState())


class DeadlyMaker:
    """A make_env that ends the worker before it can play."""

    def __reduce__(self) -> tuple[object, tuple[int, ...]]:
        return os._exit, (3,)

    def __call__(self) -> UnrulyEnv:
        return UnrulyEnv()
