"""The gold paths of all 30 tasks give the scores that the package itself reports."""

from __future__ import annotations

from typing import Any

import pytest

from had.envs.scienceworld.tasks import SPLIT_SIZES
from had.records import Task

pytestmark = [pytest.mark.java, pytest.mark.slow]

SIMPLIFICATION = "teleportAction"
MAX_STEPS = 1000  # of the package's environment: above every gold path


class _Echo:
    """A simulator as the package sees it, in which a step only repeats what the last one said."""

    def __init__(self, simulator: Any) -> None:
        self._simulator = simulator
        self.observation = ""

    def step(self, command: str) -> str:
        return self.observation

    def getValidActionObjectCombinations(self) -> list[str]:  # noqa: N802 - the simulator's name
        return []  # what makes the package's steps slow and changes nothing

    def __getattr__(self, name: str) -> Any:
        return getattr(self._simulator, name)


@pytest.fixture(scope="module")
def package_env(java: None) -> Any:
    """The package's own environment, in a JVM of its own."""
    from scienceworld import ScienceWorldEnv

    env = ScienceWorldEnv("", envStepLimit=MAX_STEPS)
    env.load("boil", 0, SIMPLIFICATION)
    yield env
    env._gateway.java_process.kill()


def _task(name: str) -> Task:
    """The first test variation."""
    return Task("t", "test", name, "", f"{name}/{sum(SPLIT_SIZES[name][:2])}")


@pytest.mark.parametrize("name", SPLIT_SIZES)
def test_every_score_on_a_gold_path_is_the_packages(env: Any, package_env: Any, name: str) -> None:
    """The package's code looks at the same world after every step: worlds are drawn without a seed."""
    simulator = env.load(_task(name), with_gold_path=True)
    path = list(simulator.getGoldActionSequence())
    package_env.server, own = _Echo(simulator), package_env.server
    try:
        env._last = env._answer(simulator.step("look around"))
        for command in path:
            step = env.step(command)
            package_env.server.observation = step.observation
            observation, _, is_done, info = package_env.step(command)
            assert (step.observation, step.score, step.is_done) == (observation, info["score"], is_done)
            if step.is_done:
                break
    finally:
        package_env.server = own
    assert (step.score, step.is_won) == (100.0, True)


@pytest.mark.parametrize(
    "name", ["boil", "use-thermometer", "power-component", "find-plant", "chemistry-mix"]
)
def test_the_package_wins_too_by_its_own_gold_path(env: Any, package_env: Any, name: str) -> None:
    package_env.get_valid_action_object_combinations = list
    package_env.load(name, sum(SPLIT_SIZES[name][:2]), SIMPLIFICATION, generateGoldPath=True)
    first, info = package_env.reset()
    here = env.reset(_task(name))
    assert sorted(here.observation.splitlines()) == sorted(first.rstrip().splitlines())
    assert info["taskDesc"].strip().endswith(here.goal)
    for command in package_env.get_gold_action_sequence():
        _, _, is_done, info = package_env.step(command)
        if is_done:
            break
    assert info["score"] == 100
