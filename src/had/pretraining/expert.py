"""An exploring player that sees only what an agent sees: it remembers, and searches place after place.

It exists to make the small models: they imitate its commands and its one-line thoughts.
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass, field

from had.pretraining.goal import Goal, parse_goal
from had.pretraining.player import Decision, Habits
from had.records import Effect, EnvStep

APPLIANCES = {"clean": "sinkbasin", "heat": "microwave", "cool": "fridge"}
TREATED = {"clean": "clean", "heat": "hot", "cool": "cool"}
_CONTENTS = re.compile(r"(?:On the ([a-z]+ \d+)|The ([a-z]+ \d+) is open\. In it), you see ([^.]*)\.")
_OBJECT = re.compile(r"\ban? ([a-z]+ \d+)")


def type_of(name: str) -> str:
    """`mug` for `mug 2`."""
    return name.rpartition(" ")[0]


def number_of(name: str) -> int:
    """2 for `mug 2`."""
    return int(name.rpartition(" ")[2])


@dataclass
class Expert:
    """An `ImitatedPlayer` of household games.

    A forgetful one searches a place drawn at random from all places instead of the first unsearched one in
    the order in which the room lists them; a careless one leaves a closed receptacle unopened while
    searching, and skips the treatment of an object that has to be cleaned, heated or cooled.

    Attributes:
        habits: how well it plays.
        rng: randomness of bad habits.
    """

    habits: Habits = field(default_factory=Habits)
    rng: random.Random = field(default_factory=random.Random)
    _goal: Goal | None = None
    _step: EnvStep | None = None
    _contents: dict[str, list[str]] = field(default_factory=dict)
    _treated: set[str] = field(default_factory=set)

    def start(self, goal: str, step: EnvStep) -> None:
        """Begin an episode with the answer to reset."""
        self._goal, self._step = parse_goal(goal), step
        self._contents, self._treated = {}, set()

    def observe(self, command: str | None, step: EnvStep) -> None:
        """Take in what a command (anybody's) did."""
        before, self._step = self._step, step
        assert before is not None, "start() comes first"
        if command is None or step.effect is Effect.NO_EFFECT:
            return
        for on, within, objects in _CONTENTS.findall(step.observation):
            self._contents[on or within] = _OBJECT.findall(objects)
        verb, _, rest = command.partition(" ")
        for gone in set(before.state.held) - set(step.state.held):
            self._contents.setdefault(rest.rpartition(" to ")[2], []).append(gone)
        for taken in set(step.state.held) - set(before.state.held):
            source = rest.rpartition(" from ")[2]
            self._contents[source] = [o for o in self._contents.get(source, []) if o != taken]
        if verb in APPLIANCES and step.state.held:
            self._treated.add(step.state.held[0])

    def decide(self) -> Decision:
        """The next thought and command."""
        assert self._goal is not None and self._step is not None, "start() comes first"
        held = self._step.state.held
        if not held:
            return self._find()
        if type_of(held[0]) != self._goal.object:
            return self._put_down(held[0])
        return self._deliver(held[0])

    # what to do with an object in hand

    def _deliver(self, held: str) -> Decision:
        goal = self._goal
        assert goal is not None
        if goal.treatment and held not in self._treated and not self._slips():
            thought = f"The {goal.object} must be {TREATED[goal.treatment]}."
            return self._at(APPLIANCES[goal.treatment], thought, f"{goal.treatment} {held} with {{here}}")
        if goal.is_lamp:
            return self._light()
        state = f"{TREATED[goal.treatment]} " if goal.treatment and held in self._treated else ""
        thought = f"The {state}{goal.object} goes to the {goal.target}."
        return self._at(goal.target, thought, f"move {held} to {{here}}")

    def _at(self, place_type: str, thought: str, command: str) -> Decision:
        """Do `command` at a place of this type: go there, open it if the command needs that, do it."""
        commands = self._commands()
        for place in filter(lambda place: type_of(place) == place_type, self._within_reach()):
            wanted = command.format(here=place)
            if wanted not in commands and f"open {place}" in commands:
                return Decision(thought, f"open {place}")
            if wanted in commands:
                return Decision(thought, wanted)
        here = self._here()
        places = [place for place in self._places() if type_of(place) == place_type and place != here]
        return self._go(min(places, key=number_of), thought) if places else self._wander(thought)

    def _light(self) -> Decision:
        goal = self._goal
        assert goal is not None
        near = self._within_reach()
        lamps = [(o, p) for p, seen in self._contents.items() for o in seen if type_of(o) == goal.target]
        for lamp, place in lamps:
            if place in near:
                return Decision(f"I want {lamp} at {place}.", f"use {lamp}")
        return self._return(lamps[0][1], goal.target) if lamps else self._look_around(goal.target)

    def _put_down(self, held: str) -> Decision:
        thought, commands = f"I do not need the {type_of(held)}.", self._commands()
        for place in self._within_reach():
            if f"move {held} to {place}" in commands:
                return Decision(thought, f"move {held} to {place}")
            if f"open {place}" in commands:
                return Decision(thought, f"open {place}")
        return self._wander(thought)

    # what to do with an empty hand

    def _find(self) -> Decision:
        """Take the object, or look for it.

        The word of the goal stands right before what is decided, `I want mug 1 from …` or `I want mug.`: the
        number follows exactly if the word stands in the prompt with a number behind it, which a small model
        reads off by induction instead of comparing sets.
        """
        goal, commands, near = self._goal, self._commands(), self._within_reach()
        assert goal is not None
        wanted = self._wanted()
        for place in near:
            for item in wanted.get(place, ()):
                if f"take {item} from {place}" in commands:
                    return Decision(f"I want {item} from {place}.", f"take {item} from {place}")
        known = [place for place, items in wanted.items() if items and place not in near]
        if known and not self._forgets():
            return self._return(known[0], goal.object)
        return self._look_around(goal.object)

    def _wanted(self) -> dict[str, list[str]]:
        """The objects that are still to be taken, by place."""
        goal = self._goal
        assert goal is not None
        done = self._placed()
        return {
            place: [o for o in objects if type_of(o) == goal.object and o not in done]
            for place, objects in self._contents.items()
        }

    def _placed(self) -> set[str]:
        goal = self._goal
        assert goal is not None
        if goal.is_lamp:
            return set()
        there = [o for p, objects in self._contents.items() if type_of(p) == goal.target for o in objects]
        return {o for o in there if type_of(o) == goal.object and (not goal.treatment or o in self._treated)}

    def _look_around(self, kind: str) -> Decision:
        """Open the place where the agent is, or go on to the first unsearched one."""
        here, thought = self._here(), f"I want {kind}."
        is_closed = here is not None and here not in self._contents and f"open {here}" in self._commands()
        return Decision(thought, f"open {here}") if is_closed and not self._slips() else self._search(thought)

    def _search(self, thought: str) -> Decision:
        if self._forgets():
            return self._wander(thought)
        here, near = self._here(), self._within_reach()
        unsearched = [place for place in self._places() if place not in self._contents and place != here]
        if not unsearched:
            return self._wander(thought)
        place = unsearched[0]
        if place not in near:
            return self._go(place, f"{thought} Not yet visited: {place}.")  # the words of the harness
        is_closed = f"open {place}" in self._commands()
        return Decision(thought, f"open {place}" if is_closed else f"examine {place}")

    def _return(self, place: str, kind: str) -> Decision:
        """Go where something was seen."""
        return self._go(place, f"I want {kind}. Back to {place}.")

    def _wander(self, thought: str) -> Decision:
        others = [place for place in self._places() if place != self._here()]
        return self._go(self.rng.choice(others), thought) if others else Decision(thought, "look")

    # what it knows

    def _go(self, place: str, thought: str) -> Decision:
        return Decision(thought, f"go to {place}")

    def _forgets(self) -> bool:
        return self.rng.random() < self.habits.forgetfulness

    def _slips(self) -> bool:
        return self.rng.random() < self.habits.carelessness

    def _here(self) -> str | None:
        assert self._step is not None
        return self._step.state.location

    def _within_reach(self) -> list[str]:
        """The place where the agent is, then those at the same spot, which cannot be gone to."""
        here = self._here()
        commands = self._commands()
        beside = [place for place in self._places() if place != here and f"examine {place}" in commands]
        return ([here] if here is not None else []) + beside

    def _commands(self) -> tuple[str, ...]:
        assert self._step is not None
        return self._step.commands

    def _places(self) -> tuple[str, ...]:
        assert self._step is not None
        return self._step.state.places
