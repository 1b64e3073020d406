"""`ScienceWorldEnv`: the science laboratory of ScienceWorld 1.2.3 as a text world.

It talks to the same Java class as the package's own `ScienceWorldEnv`, in the same order (load, reset, "look
around"), so observations and scores are the package's. It leaves out what the package does after every step:
enumerating all valid commands, which takes ten times as long as the step.

Left as they are: the simulator draws without a seed (the order in which things are listed, the offspring of
plants), so two episodes of one task may differ in wording and in luck; and while it asks which of several
commands was meant, anything but a listed number is lost.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from py4j.protocol import Py4JError

from had.envs.base import EnvFailure
from had.envs.scienceworld.jvm import MIN_HEAP_MB, SHARED, Jvm
from had.envs.scienceworld.refusals import choices, is_refused, is_unavailable
from had.envs.scienceworld.situation import details_of, held_things, room_of, rooms_named
from had.records import Effect, EnvState, EnvStep, Task

_FIRST_COMMAND = "look around"
_GOAL_PREFIX = "Your task is to "  # the prompts' own words
_CALL_ERRORS = (Py4JError, OSError)  # from py4j: the JVM died, or the simulator raised an exception


class ScienceWorldEnv:
    """A `TextEnv`. All environments of a process share one JVM.

    The state's location is the room and `places` are the rooms that the agent was in or has read of on doors.
    `commands` is empty except while the simulator asks which of several commands was meant; then it holds the
    numbers to answer with.

    Args:
        simplifications: the package's names, separated by commas; the paper takes `teleportAction`.
        heap_mb: limit of the JVM's heap in MiB, for all environments of this process.

    Raises:
        FileNotFoundError: Java or the package is missing.
        RuntimeError: the JVM does not start.
        ValueError: an unknown simplification, or too small a heap.
    """

    def __init__(self, simplifications: str = "teleportAction", heap_mb: int = 512) -> None:
        if heap_mb < MIN_HEAP_MB:
            raise ValueError(f"env.heap_mb: expected at least {MIN_HEAP_MB} MiB, got {heap_mb}")
        self._simplifications = simplifications
        self._heap_mb = heap_mb
        self._jvm: Jvm | None = None
        self._simulator: Any = None
        self._places: list[str] = []
        self._last: EnvStep | None = None
        known = [*self._connect().getPossibleSimplifications().split(", "), "easy"]
        unknown = sorted({*simplifications.split(",")} - {*known, ""})
        if unknown:
            self.close()
            raise ValueError(f"env.simplifications: expected some of {known}, got {unknown}")

    def reset(self, task: Task) -> EnvStep:
        self._last = None
        try:
            self.load(task)
            observation = self._simulator.step(_FIRST_COMMAND)
            goal = self._simulator.getTaskDescription().strip()
        except _CALL_ERRORS as error:
            raise EnvFailure(f"ScienceWorld cannot start {task.id}: {error}") from error
        self._places = []
        return self._answer(observation, goal=goal.removeprefix(_GOAL_PREFIX))

    def load(self, task: Task, with_gold_path: bool = False) -> Any:
        """The simulator with a task loaded, before its first command; a gold path takes it much longer.

        Raises:
            EnvFailure: there is no such task.
        """
        simulator = self._connect()
        name, _, variation = task.source.partition("/")
        limit = simulator.getTaskMaxVariations(name) if name in list(simulator.getTaskNames()) else 0
        if not variation.isdecimal() or int(variation) >= limit:
            raise EnvFailure(
                f"task {task.id}: expected the name of a task and one of its variations as source, such as "
                f"boil/21, got {task.source!r}; make the tasks with ScienceWorldTasks"
            )
        simulator.load(name, int(variation), self._simplifications, with_gold_path)
        simulator.reset()
        return simulator

    def step(self, command: str) -> EnvStep:
        if self._last is None:
            raise EnvFailure("step() was called before reset(): start a task first")
        try:
            return self._answer(self._simulator.step(command))
        except _CALL_ERRORS as error:
            raise EnvFailure(f"ScienceWorld failed at {command!r}: {error}") from error

    def valid_commands(self) -> tuple[str, ...]:
        """All valid commands of the present state, about 900 on average; ten times slower than a step."""
        if self._last is None:
            raise EnvFailure("valid_commands() was called before reset(): start a task first")
        return tuple(self._simulator.getValidActionObjectCombinations())

    def close(self) -> None:
        self._simulator = self._last = None
        if self._jvm is not None:
            SHARED.give_back(self._jvm)
            self._jvm = None

    def _connect(self) -> Any:
        """A simulator in a living JVM."""
        if self._jvm is None or not self._jvm.is_alive:
            self._jvm = SHARED.borrow(self._heap_mb)
            self._simulator = self._jvm.new_simulator()
        return self._simulator

    def _answer(self, observation: str, goal: str = "") -> EnvStep:
        simulator, before = self._simulator, self._last
        score = round(100 * simulator.getScore())
        step = EnvStep(
            observation=observation.rstrip(),
            commands=choices(observation),
            state=self._state(observation),
            reward=score / 100,
            score=float(score),
            is_done=bool(simulator.getCompleted()) or score < 0,
            is_won=score >= 100,
            was_available=not is_unavailable(observation),
            goal=goal,
        )
        self._last = step = _with_effect(step, before)
        return step

    def _state(self, observation: str) -> EnvState:
        look, inventory = self._simulator.freeActionLook(), self._simulator.freeActionInventory()
        room = room_of(look)
        seen = [*([room] if room else []), *rooms_named(observation)]
        self._places = list(dict.fromkeys([*self._places, *seen]))
        question = observation if choices(observation) else ""
        return EnvState(
            location=room,
            held=held_things(inventory),
            places=tuple(self._places),
            details=details_of(look, inventory, question),
        )


def _with_effect(step: EnvStep, before: EnvStep | None) -> EnvStep:
    """`step` with what its command did, compared with the state before it."""
    if before is None:
        return step
    if is_refused(step.observation):
        return replace(step, effect=Effect.NO_EFFECT)
    is_same = _key(step.state) == _key(before.state)
    return replace(step, effect=Effect.INFORMATIONAL if is_same else Effect.CHANGED)


def _key(state: EnvState) -> tuple[object, ...]:
    return state.location, state.held, state.details
