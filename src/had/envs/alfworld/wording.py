"""The sentences of ALFWorld's grammar: what the player reads about the room, a receptacle, an object."""

from __future__ import annotations

from collections.abc import Iterable

from had.envs.alfworld.world import Situation, World

NOTHING_HAPPENS = "Nothing happens."
HELP = """Available commands:
  look:                             look around your current location
  inventory:                        check your current inventory
  go to (receptacle):               move to a receptacle
  open (receptacle):                open a receptacle
  close (receptacle):               close a receptacle
  take (object) from (receptacle):  take an object from a receptacle
  move (object) to (receptacle):  place an object in or on a receptacle
  examine (something):              examine a receptacle or an object
  use (object):                     use an object
  heat (object) with (receptacle):  heat an object using a receptacle
  clean (object) with (receptacle): clean an object using a receptacle
  cool (object) with (receptacle):  cool an object using a receptacle
  slice (object) with (object):     slice an object using a sharp object
"""


def describe_start(world: World, now: Situation) -> str:
    """The first observation: the whole room, unless the game starts at a receptacle."""
    if now.location in world.receptacles_at:
        return describe_surroundings(world, now)
    return _describe_room(world, world.location_of)


def describe_surroundings(world: World, now: Situation) -> str:
    """What `look` shows: the receptacles here, and of the objects here those taken from one of them earlier.

    The grammar asks for an explicit "not in this receptacle", which the engine knows only after a take.
    """
    here = world.receptacles_at.get(now.location)
    if here is None:
        return _describe_room(world, ())  # the grammar then asks for receptacles at this very spot: none
    listed = [
        item
        for item in sorted(now.seen_at.get(now.location, set()).intersection(now.taken_from))
        for receptacle in here
        if receptacle in now.taken_from[item]
    ]
    places = _join([world.names[receptacle] for receptacle in here])
    return f"You are facing the {places}. Next to it, you see {_list(world, listed)}."


def describe_receptacle(world: World, now: Situation, receptacle: str) -> str:
    """What stands behind "You arrive at …", and what `examine` shows."""
    name = world.names[receptacle]
    contents = sorted(now.contents.get(receptacle, ()))
    if receptacle not in world.able["openable"]:
        return f"On the {name}, you see {_list(world, contents)}."
    if receptacle not in now.opened:
        return f"The {name} is closed."
    return f"The {name} is open. In it, you see {_list(world, contents)}."


def describe_object(world: World, now: Situation, item: str) -> str:
    """What `examine` shows of a held object."""
    name = world.names[item]
    if item in world.able["isreceptacleobject"]:
        return f"This is a normal {name}. In it, you see {_list(world, world.inside.get(item, ()))}."
    is_sliced = item in now.flags["issliced"]
    treatments = _treatments(now, item)
    if treatments:
        return f"This is a {treatments} {'sliced ' if is_sliced else ''}{name}."
    if item in world.able["toggleable"] and item in now.flags["istoggled"]:
        return f"This {name} is on."
    if item in world.able["sliceable"] and is_sliced:
        return f"This is a sliced {name}."
    return f"There's nothing special about {name}."


def describe_inventory(world: World, now: Situation) -> str:
    """What `inventory` shows."""
    if now.held is None:
        return "You are not carrying anything."
    return f"You are carrying: a {world.names[now.held]}."


def _treatments(now: Situation, item: str) -> str:
    """`hot and clean`, `cold`…; "cold" is said only of an object that is neither clean nor sliced."""
    is_clean = item in now.flags["isclean"]
    words = []
    if item in now.flags["ishot"]:
        words.append("hot")
    elif item in now.flags["iscool"]:
        words.append("cool" if is_clean or item in now.flags["issliced"] else "cold")
    if is_clean:
        words.append("clean")
    return " and ".join(words)


def _describe_room(world: World, receptacles: Iterable[str]) -> str:
    listed = _list(world, receptacles)
    return f"You are in the middle of a room. Looking quickly around you, you see {listed}."


def _list(world: World, ids: Iterable[str]) -> str:
    return _join([f"a {world.names[identity]}" for identity in ids])


def _join(words: list[str]) -> str:
    if not words:
        return "nothing"
    return ", ".join(words[:-1]) + ", and " + words[-1] if len(words) > 1 else words[0]
