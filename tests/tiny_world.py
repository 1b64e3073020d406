"""A three-place kitchen that needs no game file, and a harness whose warnings come soon."""

from __future__ import annotations

from had.harness.budget import Budget
from had.harness.compose import Harness
from had.harness.failure import Failure
from had.harness.situation import Situation
from had.harness.stall import Stall
from had.harness.visit import Visit
from had.records import Effect, EnvState, EnvStep, Task

PLACES = ("cabinet 1", "countertop 1", "sinkbasin 1")
SOLUTION = (
    "go to countertop 1",
    "take apple 1 from countertop 1",
    "go to cabinet 1",
    "open cabinet 1",
    "move apple 1 to cabinet 1",
)


def tiny_task(name: str = "a", goal: str = "put some apple in cabinet.", source: str = "") -> Task:
    return Task(f"tiny/{name}", "train", "pick_and_place_simple", goal, source)


def quick_harness() -> Harness:
    return Harness(
        {
            "situation": Situation(),
            "visit": Visit(),
            "budget": Budget(threshold=4),
            "failure": Failure(min_repeats=2),
            "stall": Stall(window=3),
        }
    )


class TinyWorld:
    """A `TextEnv`: put the apple from the countertop into the closed cabinet."""

    def __init__(self) -> None:
        self.location: str | None = None
        self.apple = ""
        self.is_open = False

    def reset(self, task: Task) -> EnvStep:
        self.location, self.apple, self.is_open = None, "countertop 1", False
        listed = ", ".join(f"a {place}" for place in PLACES)
        return self._answer(f"You are in a kitchen. You see {listed}.", Effect.CHANGED)

    def step(self, command: str) -> EnvStep:
        if command not in self._commands():
            return self._answer("Nothing happens.", Effect.NO_EFFECT)
        verb, _, rest = command.partition(" ")
        if verb == "look":
            return self._answer(f"You are at {self.location or 'no place'}.", Effect.INFORMATIONAL)
        if verb == "go":
            self.location = rest.removeprefix("to ")
            return self._answer(f"You arrive at {self.location}.", Effect.CHANGED)
        if verb == "open":
            self.is_open = True
            return self._answer("You open the cabinet 1.", Effect.CHANGED)
        self.apple = "hand" if verb == "take" else str(self.location)
        return self._answer(f"You {verb} the apple 1.", Effect.CHANGED)

    def close(self) -> None:
        pass

    def _commands(self) -> tuple[str, ...]:
        here = self.location
        commands = [f"go to {place}" for place in PLACES if place != here]
        is_reachable = here is not None and (here != "cabinet 1" or self.is_open)
        if here == "cabinet 1" and not self.is_open:
            commands.append("open cabinet 1")
        if is_reachable and self.apple == here:
            commands.append(f"take apple 1 from {here}")
        if is_reachable and self.apple == "hand":
            commands.append(f"move apple 1 to {here}")
        return (*commands, "look")

    def _answer(self, observation: str, effect: Effect) -> EnvStep:
        held = ("apple 1",) if self.apple == "hand" else ()
        is_won = self.apple == "cabinet 1"
        return EnvStep(
            observation,
            self._commands(),
            EnvState(self.location, held, PLACES),
            effect,
            float(is_won),
            100.0 * is_won,
            is_won,
            is_won,
        )
