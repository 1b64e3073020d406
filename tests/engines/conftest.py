"""Servers that run as real processes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from server_process import ServerProcess


@pytest.fixture
def servers() -> Iterator[list[ServerProcess]]:
    """Two servers that run."""
    processes = [ServerProcess(), ServerProcess()]
    for process in processes:
        process.start(wait=False)
    for process in processes:
        process.wait()
    yield processes
    for process in processes:
        process.kill()


@pytest.fixture
def server() -> Iterator[ServerProcess]:
    """One server that runs."""
    process = ServerProcess()
    process.start()
    yield process
    process.kill()
