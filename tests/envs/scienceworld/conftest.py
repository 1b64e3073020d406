"""Fixtures for tests that play the real simulator; skipped, with the reason, where it cannot run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from had.envs.scienceworld.requirements import check_package, find_java


@pytest.fixture(scope="session")
def java() -> None:
    """Java and the package are here, else skip."""
    try:
        check_package()
        find_java()
    except FileNotFoundError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def env(java: None) -> Iterator[Any]:
    """One environment for the tests of a file."""
    from had.envs.scienceworld.env import ScienceWorldEnv

    env = ScienceWorldEnv()
    yield env
    env.close()
