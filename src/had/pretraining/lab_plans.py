"""What to do next in ScienceWorld's short tasks, as a function of the task text and of what was seen.

The thoughts repeat the words of the task right before what follows from them, so that a small model can read
the decision off its prompt.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from had.pretraining.notebook import Notebook
from had.pretraining.player import Decision

# By life span, as the training variations rank them; every task shows one animal of each group.
LONG_LIVED = ("brown bear", "crocodile", "elephant", "giant tortoise", "parrot")
MIDDLING = ("beaver", "chipmunk", "frog", "rabbit", "wolf")
SHORT_LIVED = ("ant", "chameleon", "dragonfly", "hedgehog", "mouse")
ANIMALS = (*LONG_LIVED, *MIDDLING, *SHORT_LIVED, "blue jay", "butterfly", "dove", "toad", "turtle")
FURNITURE = ("chair", "glass cup", "table")  # not alive, movable, and one of them is in every room with a box
LOOK = "look around"

_ANIMAL = re.compile(rf"\b(?:{'|'.join(ANIMALS)})\b")
_POT = re.compile(r"^((?:self watering )?flower pot \d+) \(containing an? (.+?) in the \w+ stage")
_FIND = re.compile(
    r"find a\(n\) (?P<kind>.+?)\. First, focus on the thing\. Then, move it to the (?P<box>\w+ box) in the "
    r"(?P<room>.+?)\."
)
_SPAN = re.compile(r"(longest|shortest) life span")
_MEASURE = re.compile(
    r"measure the temperature of (?P<thing>.+?), which is located around the (?P<room>.+?)\. .+"
    r"above (?P<limit>-?[\d.]+) degrees celsius, place it in the (?P<above>\w+ box)\. .+"
    r"below -?[\d.]+ degrees celsius, place it in the (?P<below>\w+ box)\. "
    r"The boxes are located around the (?P<boxes>.+?)\."
)

Slip = Callable[[], bool]  # True: a step that the task needs is left out now


class Plan(Protocol):
    """How one kind of task is done."""

    def next(self, notes: Notebook, slips: Slip) -> Decision:
        """The next thought and command."""


def plan_for(goal: str) -> Plan:
    """The plan for a task text.

    Raises:
        ValueError: not a task that this player knows.
    """
    if match := _FIND.match(goal):
        if match["kind"] == "plant":
            return FindPlant(match["box"], match["room"])
        if match["kind"] == "non-living thing":
            return FindFurniture(match["box"], match["room"])
        return FindAnimal(match["kind"], match["box"], match["room"])
    if match := _MEASURE.match(goal):
        thing, room, limit, above, below, boxes = match.groups()
        return Measure(thing, room, float(limit), above, below, boxes)
    if "life span" in goal:
        return RankAnimals(tuple(dict.fromkeys(_SPAN.findall(goal))))
    raise ValueError(
        "goal: expected a task to find something, to measure a temperature or to compare life spans, got "
        f"{goal!r}; choose the tasks of configs/env/scienceworld_mini.yaml"
    )


def _teleport(thought: str, room: str) -> Decision:
    return Decision(thought, f"teleport {room}")


def _deliver(notes: Notebook, thing: str, box: str, room: str) -> Decision:
    thought = f"Then, move it to the {box} in the {room}."
    return _teleport(thought, room) if notes.here != room else Decision(thought, f"move {thing} to {box}")


def _survey(notes: Notebook, kind: str, room: str) -> Decision | None:
    """The steps that lead to a look around in a room; None after it."""
    if notes.here != room:
        return _teleport(f"I want a(n) {kind}: {room}.", room)
    return None if room in notes.looks else Decision(f"I want a(n) {kind}: {room}.", LOOK)


@dataclass(frozen=True)
class FindFurniture:
    """Something without life, from the very room where the box is."""

    box: str
    room: str

    def next(self, notes: Notebook, slips: Slip) -> Decision:
        if way := _survey(notes, "non-living thing", self.room):
            return way
        lines = notes.looks[self.room]
        thing = next((name for line in lines for name in FURNITURE if re.match(rf"{name}\b", line)), "table")
        if thing not in notes.focused and not slips():
            return Decision(f"The {thing} is a(n) non-living thing.", f"focus on {thing}")
        return _deliver(notes, thing, self.box, self.room)


@dataclass(frozen=True)
class FindAnimal:
    """An animal, or any living thing: animals are outside."""

    kind: str
    box: str
    room: str

    def next(self, notes: Notebook, slips: Slip) -> Decision:
        held = [name for name in notes.held if _ANIMAL.search(name)]
        if not held and (way := _survey(notes, self.kind, "outside")):
            return way
        found = held or [line for line in notes.looks["outside"] if _ANIMAL.search(line)]
        if not found:
            return Decision(f"I want a(n) {self.kind}: outside.", LOOK)
        if found[0] not in notes.focused and not slips():
            return Decision(f"The {found[0]} is a(n) {self.kind}.", f"focus on {found[0]}")
        if not held:
            return Decision(f"The {found[0]} is in focus.", f"pick up {found[0]}")
        return _deliver(notes, held[0], self.box, self.room)


@dataclass(frozen=True)
class FindPlant:
    """A plant of the greenhouse, carried in its flower pot."""

    box: str
    room: str

    def next(self, notes: Notebook, slips: Slip) -> Decision:
        held = [name for name in notes.held if "flower pot" in name]
        if held:
            return _deliver(notes, held[0], self.box, self.room)
        if way := _survey(notes, "plant", "greenhouse"):
            return way
        found = [match for line in notes.looks["greenhouse"] if (match := _POT.match(line))]
        if not found:
            return Decision("I want a(n) plant: greenhouse.", LOOK)
        pot, plant = found[0].groups()
        named = f"The {pot} (containing a {plant}) is"  # in the order of the look around
        if plant not in notes.focused and not slips():
            return Decision(f"{named} a(n) plant.", f"focus on {plant}")
        return Decision(f"{named} in focus.", f"pick up {pot}")


@dataclass(frozen=True)
class RankAnimals:
    """Focus on the animals with the longest or shortest life span, in the order of the task."""

    spans: tuple[str, ...]

    def next(self, notes: Notebook, slips: Slip) -> Decision:
        if notes.here != "outside":
            return _teleport("The animals are in the 'outside' location.", "outside")
        animals = [line for line in notes.looks.get("outside", ()) if _ANIMAL.search(line)]
        if not animals:
            return Decision("The animals are in the 'outside' location.", LOOK)
        for span in self.spans:
            group = LONG_LIVED if span == "longest" else SHORT_LIVED
            if not any(_kind(name) in group for name in notes.focused):
                fitting = [name for name in animals if _kind(name) in group]
                chosen = animals[0] if slips() or not fitting else fitting[0]
                return Decision(f"The animal with the {span} life span: {chosen}.", f"focus on {chosen}")
        return Decision("All is in focus.", LOOK)


def _kind(name: str) -> str:
    match = _ANIMAL.search(name)
    return match[0] if match else ""


@dataclass(frozen=True)
class Measure:
    """Measure a temperature and put what was measured into the box that this decides."""

    thing: str
    room: str
    limit: float  # degrees Celsius
    above: str
    below: str
    boxes: str

    def next(self, notes: Notebook, slips: Slip) -> Decision:
        for name, room, first in (
            ("thermometer", "kitchen", "First, the thermometer, which is in the kitchen."),
            (self.thing, self.room, f"Next, the {self.thing}, which is located around the {self.room}."),
        ):
            if name not in notes.held:
                return Decision(first, f"pick up {name}" if notes.here == room else f"teleport {room}")
            if name not in notes.focused and not slips():
                return Decision(f"{first.partition(',')[0]}, focus on the {name}.", f"focus on {name}")
        reading = notes.readings.get(self.thing)
        if reading is None and not slips():
            return Decision(f"Then the temperature of {self.thing}.", f"use thermometer on {self.thing}")
        if notes.here != self.boxes:
            return _teleport(f"The boxes are located around the {self.boxes}.", self.boxes)
        is_above = reading is not None and reading > self.limit
        side, box = ("above", self.above) if is_above else ("below", self.below)
        said = "It" if reading is None else f"{reading} degrees celsius"
        thought = f"{said} is {side} {self.limit} degrees celsius, place it in the {box}."
        return Decision(thought, f"move {self.thing} to {box}")
