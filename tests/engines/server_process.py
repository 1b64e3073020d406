"""Starts, kills and restarts the test server (completion_server.py) as a real process."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

PROGRAM = Path(__file__).with_name("completion_server.py")
MODEL = "table-model"


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


class ServerProcess:
    """One server on a port of its own, which it keeps over restarts."""

    def __init__(self, model: str = MODEL) -> None:
        self.port, self.model = free_port(), model
        self.url = f"http://127.0.0.1:{self.port}"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, wait: bool = True) -> None:
        # -S -E: a bare interpreter starts faster
        command = [sys.executable, "-S", "-E", str(PROGRAM), str(self.port), self.model]
        self._process = subprocess.Popen(command)
        if wait:
            self.wait()

    def wait(self) -> None:
        while True:
            try:
                self._ask("/health")
                return
            except URLError:
                assert self._process is not None and self._process.poll() is None, "the server has died"
                time.sleep(0.02)

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def inject(self, **faults: Any) -> None:
        self._ask("/inject", faults)

    def seen(self) -> dict[str, Any]:
        """Number of `completions`, and the other `calls` by path, since it was started."""
        return json.loads(self._ask("/seen"))

    def _ask(self, path: str, content: dict[str, Any] | None = None) -> bytes:
        data = None if content is None else json.dumps(content).encode()
        with urlopen(f"{self.url}{path}", data, timeout=10) as answer:
            return answer.read()
