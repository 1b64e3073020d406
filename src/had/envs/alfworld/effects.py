"""What each command does to the situation, and the sentence it answers; one function per command."""

from __future__ import annotations

from collections.abc import Callable

from had.envs.alfworld import wording
from had.envs.alfworld.world import Situation, World

# A command that is possible now: the function and the ids it works on.
Action = tuple[Callable[..., str], tuple[str, ...]]


def look(world: World, now: Situation) -> str:
    """`look`."""
    return wording.describe_surroundings(world, now)


def inventory(world: World, now: Situation) -> str:
    """`inventory`."""
    return wording.describe_inventory(world, now)


def show_help(world: World, now: Situation) -> str:
    """`help`."""
    return wording.HELP


def go(world: World, now: Situation, receptacle: str) -> str:
    """`go to X`."""
    now.location = world.location_of[receptacle]
    now.place = world.names[receptacle]
    return f"You arrive at {now.place}. {wording.describe_receptacle(world, now, receptacle)}"


def open_receptacle(world: World, now: Situation, receptacle: str) -> str:
    """`open X`."""
    now.opened.add(receptacle)
    name = world.names[receptacle]
    return f"You open the {name}. {wording.describe_receptacle(world, now, receptacle)}"


def close_receptacle(world: World, now: Situation, receptacle: str) -> str:
    """`close X`."""
    now.opened.discard(receptacle)
    return f"You close the {world.names[receptacle]}."


def examine_receptacle(world: World, now: Situation, receptacle: str) -> str:
    """`examine X` of a receptacle."""
    return wording.describe_receptacle(world, now, receptacle)


def examine_object(world: World, now: Situation, item: str) -> str:
    """`examine X` of the held object."""
    return wording.describe_object(world, now, item)


def take(world: World, now: Situation, item: str, receptacle: str) -> str:
    """`take X from Y`."""
    now.contents[receptacle].discard(item)
    now.taken_from.setdefault(item, set()).add(receptacle)
    now.seen_at.get(now.location, set()).discard(item)
    now.held = item
    return f"You pick up the {world.names[item]} from the {world.names[receptacle]}."


def move(world: World, now: Situation, item: str, receptacle: str) -> str:
    """`move X to Y`."""
    now.contents.setdefault(receptacle, set()).add(item)
    now.taken_from.get(item, set()).discard(receptacle)
    now.seen_at.setdefault(now.location, set()).add(item)
    now.held = None
    return f"You move the {world.names[item]} to the {world.names[receptacle]}."


def clean(world: World, now: Situation, item: str, receptacle: str) -> str:
    """`clean X with Y`."""
    now.flags["isclean"].add(item)
    return f"You clean the {world.names[item]} using the {world.names[receptacle]}."


def heat(world: World, now: Situation, item: str, receptacle: str) -> str:
    """`heat X with Y`."""
    now.flags["ishot"].add(item)
    now.flags["iscool"].discard(item)
    return f"You heat the {world.names[item]} using the {world.names[receptacle]}."


def cool(world: World, now: Situation, item: str, receptacle: str) -> str:
    """`cool X with Y`."""
    now.flags["iscool"].add(item)
    now.flags["ishot"].discard(item)
    return f"You cool the {world.names[item]} using the {world.names[receptacle]}."


def use(world: World, now: Situation, item: str) -> str:
    """`use X`: the domain only ever toggles on."""
    now.flags["istoggled"].add(item)
    return f"You turn on the {world.names[item]}."


def slice_object(world: World, now: Situation, item: str, knife: str) -> str:
    """`slice X with Y`."""
    now.flags["issliced"].add(item)
    return f"You sliced the {world.names[item]} with the {world.names[knife]}."
