"""`WorkerProcess`: the pool's side of one worker: start, send, receive in time, end."""

from __future__ import annotations

import contextlib
import os
import pickle
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

from had.envs.base import EnvFailure, TextEnv
from had.envs.slots import Answers

# A new worker imports its backend before its first answer: seconds, a minute on a busy machine.
START_ALLOWANCE_S = 120.0
_STOP_S = 2.0


class WorkerProcess:
    """One worker process and the connection to it.

    Attributes:
        is_ready: it has started and imported its environment.
        deadline: time.monotonic() at which the present call has lasted too long.
    """

    def __init__(self, make_env: Callable[[], TextEnv]) -> None:
        payload = pickle.dumps(make_env)  # before anything is started: a lambda fails here
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "had.envs.worker", str(theirs.fileno()), str(os.getpid())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(path or os.getcwd() for path in sys.path)},
            )
        self.connection = Connection(ours.detach())
        self.pid = self._process.pid
        self.num_episodes = 0
        self.is_ready = False
        self.deadline = 0.0
        self.connection.send_bytes(payload)

    def send(self, method: str, batch: dict[int, Any], timeout_s: float) -> None:
        """Hand over one call; a worker that is gone is noticed by `receive`."""
        self.deadline = time.monotonic() + (timeout_s if self.is_ready else START_ALLOWANCE_S)
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.connection.send((method, batch))

    def receive(self, timeout_s: float) -> Answers | None:
        """The answer to the present call, or None while there is none yet.

        Raises:
            EnvFailure: the worker died, or its time has passed.
            RuntimeError: the environment cannot be made.
        """
        try:
            if not self.connection.poll():
                if time.monotonic() < self.deadline:
                    return None
                limit_s = timeout_s if self.is_ready else START_ALLOWANCE_S
                raise EnvFailure(f"worker {self.pid} did not answer within {limit_s:g} s")
            kind, content = self.connection.recv()
        except (EOFError, OSError):
            self._wait()
            raise EnvFailure(f"worker {self.pid} died (exit status {self._process.returncode})") from None
        if kind == "error":
            raise RuntimeError(f"an environment cannot be made in a worker:\n{content}")
        if kind == "ready":
            self.is_ready = True
            self.deadline = time.monotonic() + timeout_s
            return None
        return content

    def stop(self) -> None:
        """Let the worker end; kill it when it does not."""
        self.connection.close()
        self._wait()

    def kill(self) -> None:
        """End the worker now."""
        self._process.kill()
        self._process.wait()
        self.connection.close()

    def _wait(self) -> None:
        try:
            self._process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            self.kill()
