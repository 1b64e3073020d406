"""The environment over the real simulator: answers, effects, states, failures."""

from __future__ import annotations

import os
import signal
from typing import Any

import pytest

from had.envs.base import EnvFailure
from had.records import Effect, EnvStep, Task

pytestmark = pytest.mark.java

BOIL = Task("t", "train", "boil", "", "boil/0")  # begins in the hallway


@pytest.fixture
def start(env: Any) -> EnvStep:
    return env.reset(BOIL)


def test_a_reset_looks_around_and_tells_the_task(start: EnvStep) -> None:
    assert start.observation.startswith("This room is called the hallway. In it, you see: \n\tthe agent")
    assert start.goal.startswith("boil water. For compounds without a boiling point, combusting")
    assert (start.commands, start.effect, start.score, start.is_done) == ((), Effect.CHANGED, 0.0, False)
    assert (start.state.location, start.state.held) == ("hallway", ("orange",))
    assert start.state.places == (
        "hallway", "art studio", "bedroom", "greenhouse", "kitchen", "living room", "workshop",
    )  # fmt: skip


def test_places_are_what_the_agent_has_read(env: Any, start: EnvStep) -> None:
    there = env.step("teleport to kitchen")
    assert there.observation == "You teleport to the kitchen."
    assert there.state.location == "kitchen" and there.state.places == start.state.places
    looked = env.step("look around")
    assert looked.state.places == (*start.state.places, "bathroom", "outside")
    assert env.reset(BOIL).state.places == start.state.places


def test_effects(env: Any, start: EnvStep) -> None:
    env.step("teleport to kitchen")
    effects = {
        "look around": Effect.INFORMATIONAL,
        "open fridge": Effect.CHANGED,
        "open FRIDGE": Effect.NO_EFFECT,
        "read stove": Effect.NO_EFFECT,
        "pick up thermometer": Effect.CHANGED,
        "use thermometer in inventory on counter": Effect.INFORMATIONAL,
        "fly": Effect.NO_EFFECT,
        "wait1": Effect.INFORMATIONAL,
    }
    assert {command: env.step(command).effect for command in effects} == effects


def test_a_thing_that_comes_back_brings_back_the_state(env: Any, start: EnvStep) -> None:
    env.step("teleport to kitchen")
    before = env.step("open fridge").state
    opened = env.step("close fridge").state
    assert opened.details != before.details
    assert env.step("open fridge").state == before


def test_only_a_command_that_does_not_exist_was_not_available(env: Any, start: EnvStep) -> None:
    env.step("teleport to kitchen")
    assert env.step("read stove").was_available
    assert not env.step("read unicorn").was_available
    assert env.step("look around").was_available


def test_a_question_lists_its_answers(env: Any, start: EnvStep) -> None:
    env.step("teleport to kitchen")
    before = env.step("look around").state
    asked = env.step("get orange")
    assert asked.commands == ("0", "1") and asked.state.details != before.details
    lost = env.step("open fridge")
    assert (lost.effect, lost.was_available, lost.commands) == (Effect.NO_EFFECT, False, ())
    assert lost.state == before
    asked = env.step("get orange")
    number = next(line[0] for line in asked.observation.splitlines() if "in bowl" in line)
    assert env.step(number).state.held == ("orange", "orange")


def test_a_wrong_focus_is_fatal(env: Any, start: EnvStep) -> None:
    env.step("teleport to kitchen")
    end = env.step("focus on banana")
    assert (end.score, end.reward, end.is_done, end.is_won) == (-100.0, -1.0, True, False)


def test_valid_commands_are_enumerated_only_when_asked_for(env: Any) -> None:
    class Recorder:
        def __init__(self, simulator: Any) -> None:
            self.simulator, self.called = simulator, set[str]()

        def __getattr__(self, name: str) -> Any:
            self.called.add(name)
            return getattr(self.simulator, name)

    real, env._simulator = env._simulator, Recorder(env._simulator)
    try:
        env.reset(BOIL)
        env.step("teleport to kitchen")
        listing = {name for name in env._simulator.called if "Valid" in name or "Possible" in name}
        assert "step" in env._simulator.called and listing == set()
        assert "open fridge" in env.valid_commands()
    finally:
        env._simulator = real


@pytest.mark.parametrize("source", ["", "boil", "boil/x", "boil/30", "cook/0"])
def test_a_task_that_does_not_exist(env: Any, source: str) -> None:
    with pytest.raises(EnvFailure, match=r"expected the name of a task.*boil/21"):
        env.reset(Task("t", "train", "boil", "", source))
    assert env.reset(BOIL).state.location == "hallway"


def test_before_a_reset(java: None) -> None:
    from had.envs.scienceworld.env import ScienceWorldEnv

    env = ScienceWorldEnv()
    try:
        with pytest.raises(EnvFailure, match="before reset"):
            env.step("look around")
        with pytest.raises(EnvFailure, match="before reset"):
            env.valid_commands()
    finally:
        env.close()
        env.close()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"simplifications": "teleportAction,noGravity"}, r"teleportAction.*got \['noGravity'\]"),
        ({"heap_mb": 8}, "heap_mb: expected at least 96"),
    ],
)
def test_wrong_arguments(java: None, arguments: dict[str, Any], message: str) -> None:
    from had.envs.scienceworld.env import ScienceWorldEnv

    with pytest.raises(ValueError, match=message):
        ScienceWorldEnv(**arguments)


def test_a_killed_jvm_costs_the_episode_and_no_more(env: Any, start: EnvStep) -> None:
    process = env._jvm.process
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    with pytest.raises(EnvFailure, match="ScienceWorld failed at 'look around'"):
        env.step("look around")
    again = env.reset(BOIL)
    assert again.observation == start.observation
    assert env._jvm.process.pid != process.pid
