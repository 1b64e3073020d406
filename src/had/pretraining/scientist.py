"""A player of ScienceWorld's short tasks that sees only what an agent sees.

It exists to make small models for the laboratory: they imitate its commands and its one-line thoughts.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from had.pretraining.lab_plans import LOOK, Plan, plan_for
from had.pretraining.notebook import ROOMS, Notebook
from had.pretraining.player import Decision, Habits
from had.records import EnvStep


@dataclass
class Scientist:
    """An `ImitatedPlayer` of ScienceWorld with teleportation.

    A forgetful one teleports into any room instead of looking or of going on to the right one, and looks
    around instead of using what it has seen; a careless one goes on without focusing or measuring, and takes
    the first animal for the one with the life span that is asked for.

    Attributes:
        habits: how well it plays.
        rng: randomness of bad habits.
    """

    habits: Habits = field(default_factory=Habits)
    rng: random.Random = field(default_factory=random.Random)
    _plan: Plan | None = None
    _notes: Notebook | None = None

    def start(self, goal: str, step: EnvStep) -> None:
        """Begin an episode with the answer to reset.

        Raises:
            ValueError: the task is not one of those that it knows.
        """
        self._plan, self._notes = plan_for(goal), Notebook(step)

    def observe(self, command: str | None, step: EnvStep) -> None:
        """Take in what a command (anybody's) did."""
        assert self._notes is not None, "start() comes first"
        self._notes.take(command, step)

    def decide(self) -> Decision:
        """The next thought and command."""
        assert self._plan is not None and self._notes is not None, "start() comes first"
        if self._notes.step.commands:  # the simulator asks which of several commands was meant
            return Decision("The first one.", self._notes.step.commands[0])
        decision = self._plan.next(self._notes, self._slips)
        if decision.command == self._notes.refused:
            return Decision("That did nothing.", LOOK)
        if self.rng.random() >= self.habits.forgetfulness:
            return decision
        if decision.command == LOOK or decision.command.startswith("teleport "):
            room = self.rng.choice(ROOMS)
            return Decision(f"I go to the {room}.", f"teleport {room}")
        return Decision("I look again.", LOOK)

    def _slips(self) -> bool:
        return self.rng.random() < self.habits.carelessness
