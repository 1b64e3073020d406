"""The small world, made once, and a run of every method, made when it is first asked for."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from method_world import Result, World, make_world, train


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return make_world(tmp_path_factory.mktemp("world"))


@pytest.fixture(scope="session")
def run_of(world: World, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Result]:
    """The run of a method, trained once in a session."""
    results: dict[str, Result] = {}

    def run(method: str) -> Result:
        if method not in results:
            folder = tmp_path_factory.mktemp(method)
            results[method] = train(world.assembly(folder, f"method={method}"))
        return results[method]

    return run
