"""The gold paths of all 30 tasks, replayed here and in the package's own environment."""

from __future__ import annotations

from typing import Any

import pytest

from had.envs.scienceworld.tasks import SPLIT_SIZES
from had.records import Task

pytestmark = [pytest.mark.java, pytest.mark.slow]

SIMPLIFICATION = "teleportAction"


@pytest.fixture(scope="module")
def package_env(java: None) -> Any:
    """The package's environment, with a step limit above all gold paths."""
    from scienceworld import ScienceWorldEnv

    env = ScienceWorldEnv("", envStepLimit=1000)
    yield env
    env._gateway.java_process.kill()


def _replay_in_package(env: Any, name: str, variation: int) -> tuple[list[str], list[tuple[float, bool]]]:
    env.load(name, variation, SIMPLIFICATION, generateGoldPath=True)
    env.get_valid_action_object_combinations = list  # what makes its steps slow and changes nothing
    env.reset()
    path, scores = env.get_gold_action_sequence(), []
    for command in path:
        _, _, is_done, info = env.step(command)
        scores.append((float(info["score"]), is_done))
        if is_done:
            break
    return path, scores


def _replay_here(env: Any, name: str, variation: int) -> tuple[list[str], list[tuple[float, bool]], bool]:
    task = Task("t", "test", name, "", f"{name}/{variation}")
    path, scores = list(env.load(task, with_gold_path=True).getGoldActionSequence()), []
    env._last = env._answer(env._simulator.step("look around"))  # reset() would make another world
    for command in path:
        step = env.step(command)
        scores.append((step.score, step.is_done))
        if step.is_done:
            break
    return path, scores, step.is_won


@pytest.mark.parametrize("name", SPLIT_SIZES)
def test_a_gold_path_gives_the_packages_scores(env: Any, package_env: Any, name: str) -> None:
    variation = sum(SPLIT_SIZES[name][:2])  # the first test variation
    path, scores, is_won = _replay_here(env, name, variation)
    package_path, package_scores = _replay_in_package(package_env, name, variation)
    assert scores[-1] == package_scores[-1] == (100.0, True) and is_won
    # the world of a load is drawn without a seed, and so is its gold path: where both got the same one, every
    # score on the way is the same
    print(f"{name}: {len(path)} commands, same path: {path == package_path}")
    if path == package_path:
        assert scores == package_scores
