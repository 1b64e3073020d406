"""Furnishes a floor plan for one game: which places stay, which objects lie where, where the agent stands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from had.envs.household.catalogue import LAMP, ONE_OBJECT_PLACES, SINGLE, found_in
from had.envs.household.floor_plans import FloorPlan, Place, mangle
from had.envs.household.goals import Goal
from had.envs.household.preset import Preset

_SPREAD = 40  # objects lie within 0.4 m of their place's coordinates


@dataclass(frozen=True)
class Thing:
    """An object: its PDDL id, its type, and the place where it lies at the start."""

    id: str
    type: str
    place: Place


@dataclass(frozen=True)
class Room:
    """The start of a game; places and things are sorted by id."""

    plan: FloorPlan
    places: tuple[Place, ...]
    things: tuple[Thing, ...]
    start: str


def furnish(plan: FloorPlan, goal: Goal, preset: Preset, rng: Random) -> Room | None:
    """A room in which the goal can be reached and does not hold yet; None when too few places are left."""
    places = _keep_places(plan, goal, preset, rng)
    layout = _Layout(places, rng)
    if goal.target == LAMP and not layout.add(LAMP):
        return None
    # The goal's objects never start in the goal's kind of place: a game is never won at the start.
    num_wanted = goal.task.num_objects
    num_copies = (
        1 if goal.object_type in SINGLE else rng.randint(num_wanted, max(num_wanted, preset.max_copies))
    )
    added = [layout.add(goal.object_type, avoid=goal.target) for _ in range(num_copies)]
    if sum(added) < num_wanted:
        return None
    _add_other_things(layout, plan, goal, preset, rng)
    things = tuple(sorted(layout.things, key=lambda thing: thing.id))
    return Room(plan, places, things, rng.choice(plan.free_locations))


def _keep_places(plan: FloorPlan, goal: Goal, preset: Preset, rng: Random) -> tuple[Place, ...]:
    """The places that the goal needs, and others at random up to the preset's number, in the plan's order."""
    sources = [kind for kind in found_in(goal.object_type) if kind != goal.target]
    stands = list(found_in(LAMP)) if goal.target == LAMP else [goal.target]
    needed = [
        rng.choice([place for place in plan.places if place.type in kinds])
        for kinds in (sources, stands, [goal.task.appliance])
        if kinds != [""]
    ]
    others = [place for place in plan.places if place not in needed]
    num_places = rng.randint(preset.min_places, preset.max_places)
    num_others = max(0, min(len(others), num_places - len(set(needed))))
    kept = {*needed, *rng.sample(others, num_others)}
    return tuple(place for place in plan.places if place in kept)


def _add_other_things(layout: _Layout, plan: FloorPlan, goal: Goal, preset: Preset, rng: Random) -> None:
    if goal.target != LAMP and LAMP in plan.object_types:
        layout.add(LAMP)
    others = [kind for kind in plan.object_types if found_in(kind) and kind not in (LAMP, goal.object_type)]
    rng.shuffle(others)
    num_things = rng.randint(preset.min_objects, preset.max_objects)
    for kind in others:
        num_copies = 1 if kind in SINGLE else rng.randint(1, preset.max_copies)
        for _ in range(min(num_copies, num_things - len(layout.things))):
            layout.add(kind)


class _Layout:
    """Things put down so far."""

    def __init__(self, places: Sequence[Place], rng: Random) -> None:
        self.things: list[Thing] = []
        self._places = places
        self._rng = rng
        self._ids: set[str] = set()

    def add(self, object_type: str, avoid: str = "") -> bool:
        """Put one object where such objects are usually found; False when no such place has room."""
        full = {thing.place for thing in self.things if thing.place.type in ONE_OBJECT_PLACES}
        free = [place for place in self._places if place.type != avoid and place not in full]
        weights = found_in(object_type)
        kinds = [kind for kind in sorted({place.type for place in free}) if kind in weights]
        if not kinds:
            return False
        kind = self._rng.choices(kinds, [weights[kind] for kind in kinds])[0]
        place = self._rng.choice([place for place in free if place.type == kind])
        self.things.append(Thing(self._new_id(object_type, place), object_type, place))
        return True

    def _new_id(self, object_type: str, place: Place) -> str:
        """An id in ALFWorld's spelling; the coordinates, near the place's, decide only about the numbers."""
        x, y, z = _coordinates(place)
        while True:
            near = [value + self._rng.randint(-_SPREAD, _SPREAD) / 100 for value in (x, z)]
            identity = mangle(f"{object_type}|{near[0]:+06.2f}|{y:+06.2f}|{near[1]:+06.2f}")
            if identity not in self._ids:
                self._ids.add(identity)
                return identity


def _coordinates(place: Place) -> tuple[float, float, float]:
    words = place.id.replace("_minus_", "-").replace("_plus_", "").replace("_dot_", ".").split("_bar_")
    x, y, z = (float(word) for word in words[1:4])
    return x, y, z
