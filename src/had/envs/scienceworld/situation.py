"""Reads the simulator's texts: the room, the things held, the rooms behind doors, the details of a state."""

from __future__ import annotations

import re

_ROOM = re.compile(r"(?:room|location) is called the (.+?)\. ")
_DOOR = re.compile(r"door to the ([a-z ]+?) \(that is")
_ARTICLE = re.compile(r"^(?:an?|the) ", re.IGNORECASE)
# What follows a name: "(containing nothing)", ", currently reading…", "its terminal 1…" (glued to a name).
_AFTER_NAME = re.compile(r" \(|, |\. |its (?:terminal|anode|cathode)| titled | in the \w+ stage")
# Readings that change by themselves: the same state goes on.
_READING = re.compile(r"-?\d+(?:\.\d+)?(?=%| ticks| degrees)")


def room_of(look: str) -> str | None:
    """The room that a look around describes."""
    match = _ROOM.search(look)
    return match[1] if match else None


def rooms_named(text: str) -> list[str]:
    """The rooms behind the doors that a text mentions, in its order."""
    return list(dict.fromkeys(_DOOR.findall(text)))


def held_things(inventory: str) -> tuple[str, ...]:
    """Names of the things in an inventory text, e.g. `metal pot` for "a metal pot (containing nothing)"."""
    return tuple(thing_name(line.strip()) for line in inventory.splitlines()[1:] if line.strip())


def thing_name(described: str) -> str:
    """The name of one thing, by which commands mean it."""
    name = _ARTICLE.sub("", described).removeprefix("substance called ")
    return _AFTER_NAME.split(name, maxsplit=1)[0].strip()


def details_of(*texts: str) -> tuple[str, ...]:
    """The lines of the texts, sorted, without readings that change by themselves.

    Two states are the same when these are equal: doors, devices, contents and positions of things count; the
    order in which the simulator happens to list things does not.
    """
    lines = [_READING.sub("#", line.strip()) for text in texts for line in text.splitlines()]
    return tuple(sorted(line for line in lines if line))
