"""Finds a short walkthrough of a game from its full state."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import permutations

from had.envs.alfworld.game import name_entities
from had.envs.household.catalogue import LAMP
from had.envs.household.floor_plans import Place
from had.envs.household.goals import Goal
from had.envs.household.rooms import Room, Thing


def plan_walkthrough(room: Room, goal: Goal) -> tuple[str, ...]:
    """The first of the shortest direct plans: bring these objects to that place, one after the other."""
    entities: list[Thing | Place] = [*room.things, *room.places]
    names = name_entities(entity.id.lower() for entity in entities)
    return min((tuple(plan.commands) for plan in _plans(room, goal, names)), key=_num_commands)


def _num_commands(commands: tuple[str, ...]) -> int:
    return len(commands)


def _plans(room: Room, goal: Goal, names: dict[str, str]) -> Iterator[_Plan]:
    wanted = [thing for thing in room.things if thing.type == goal.object_type]
    if goal.target == LAMP:
        lamps = [thing for thing in room.things if thing.type == LAMP]
        for thing, lamp in ((thing, lamp) for thing in wanted for lamp in lamps):
            plan = _Plan(names, room.start)
            plan.take(thing)
            plan.go(lamp.place)
            plan.commands.append(f"use {plan.name(lamp)}")
            yield plan
        return
    appliances = [place for place in room.places if place.type == goal.task.appliance]
    targets = [place for place in room.places if place.type == goal.target]
    for things in permutations(wanted, goal.task.num_objects):
        for target in targets:
            plan = _Plan(names, room.start)
            for thing in things:
                plan.take(thing)
                if appliances:
                    plan.treat(goal.task.verb, thing, appliances[0])
                plan.put(thing, target)
            yield plan


@dataclass
class _Plan:
    """Commands so far and what they changed."""

    names: dict[str, str]
    location: str
    commands: list[str] = field(default_factory=list)
    opened: set[str] = field(default_factory=set)

    def name(self, entity: Place | Thing) -> str:
        return self.names[entity.id.lower()]

    def go(self, place: Place) -> None:
        # Places can share a location; going to where one stands is refused.
        if place.location != self.location:
            self.commands.append(f"go to {self.name(place)}")
            self.location = place.location

    def reach_into(self, place: Place) -> None:
        self.go(place)
        if place.is_openable and place.id not in self.opened:
            self.commands.append(f"open {self.name(place)}")
            self.opened.add(place.id)

    def take(self, thing: Thing) -> None:
        self.reach_into(thing.place)
        self.commands.append(f"take {self.name(thing)} from {self.name(thing.place)}")

    def treat(self, verb: str, thing: Thing, appliance: Place) -> None:
        # Cleaning, heating and cooling work with closed doors.
        self.go(appliance)
        self.commands.append(f"{verb} {self.name(thing)} with {self.name(appliance)}")

    def put(self, thing: Thing, place: Place) -> None:
        self.reach_into(place)
        self.commands.append(f"move {self.name(thing)} to {self.name(place)}")
