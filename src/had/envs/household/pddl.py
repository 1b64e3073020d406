"""Writes a game as ALFWorld's files do: the PDDL problem, `game.tw-pddl` and `traj_data.json`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.resources import files

from had.envs.household.catalogue import LAMP, can_contain, properties
from had.envs.household.goals import Goal
from had.envs.household.rooms import Room

# Types that the domain names; they must be declared even when a room has nothing of the kind.
_DOMAIN_PLACES = ("FridgeType", "MicrowaveType", "SinkBasinType", "SinkType")
_DOMAIN_OBJECTS = ("ButterKnifeType", "KnifeType")


def write_problem(name: str, room: Room, goal: Goal) -> str:
    """The PDDL problem of a game."""
    return (
        f"(define (problem plan_{name})\n(:domain alfred)\n(:objects\n"
        + _lines(_declarations(room))
        + ")\n(:init\n"
        + _lines(f"({fact})" for fact in _facts(room))
        + ")\n"
        + re.sub(r"\s+", " ", goal.pddl).strip()
        + "\n"
    )


def game_data(problem: str, sentence: str, walkthrough: Sequence[str]) -> dict[str, object]:
    """The JSON object of `game.tw-pddl`, with the installed alfworld's domain and grammar."""
    return {
        "pddl_domain": _domain(),
        "grammar": _shipped("alfred.twl2").replace("UNKNOWN GOAL.", sentence),
        "pddl_problem": problem,
        "solvable": True,
        "walkthrough": list(walkthrough),
    }


@cache
def _domain() -> str:
    """The domain without its comments, which are two thirds of it."""
    return re.sub(r"(?m)^\s*(;.*)?\n", "", _shipped("alfred.pddl"))


@cache
def _shipped(name: str) -> str:
    return (files("alfworld") / "data" / name).read_text(encoding="utf-8")


def _lines(items: Iterable[str]) -> str:
    return "".join(f"    {item}\n" for item in items)


def _declarations(room: Room) -> list[str]:
    object_types = sorted({*_DOMAIN_OBJECTS, *(f"{thing.type}Type" for thing in room.things)})
    place_types = sorted({*_DOMAIN_PLACES, *(f"{place.type}Type" for place in room.places)})
    locations = sorted({room.start, *(place.location for place in room.places)})
    return [
        "agent1 - agent",
        *(f"{name} - otype" for name in object_types),
        *(f"{name} - rtype" for name in place_types),
        *(f"{thing.id} - object" for thing in room.things),
        *(f"{place.id} - receptacle" for place in room.places),
        *(f"{location} - location" for location in locations),
    ]


def _facts(room: Room) -> list[str]:
    place_types = sorted({place.type for place in room.places})
    object_types = sorted({thing.type for thing in room.things} - {LAMP})
    return [
        *(f"receptacleType {place.id} {place.type}Type" for place in room.places),
        *(f"objectType {thing.id} {thing.type}Type" for thing in room.things),
        *(
            f"canContain {place_type}Type {object_type}Type"
            for place_type in place_types
            for object_type in object_types
            if can_contain(place_type, object_type)
        ),
        *(f"{predicate} {thing.id}" for thing in room.things for predicate in properties(thing.type)),
        *(f"openable {place.id}" for place in room.places if place.is_openable),
        f"atLocation agent1 {room.start}",
        *(f"inReceptacle {thing.id} {thing.place.id}" for thing in room.things),
        *(f"receptacleAtLocation {place.id} {place.location}" for place in room.places),
        *(f"objectAtLocation {thing.id} {thing.place.location}" for thing in room.things),
    ]
