"""The floor plans that the alfworld package ships: which places and which kinds of object a room has."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import product

from alfworld.gen import constants

# The floor plans that ALFWorld's own unseen splits hold out (valid_unseen: 10, 219, 308, 424), so that a
# model pretrained on generated games has seen none of them either.
UNSEEN = (9, 10, 29, 215, 219, 226, 308, 315, 325, 404, 424, 425)
# The package lists only four places of floor plan 304, fewer than the smallest of ALFWorld's own games has.
_TOO_BARE = (304,)
TRAIN = tuple(
    number
    for numbers in constants.SCENE_TYPE.values()
    for number in numbers
    if number not in UNSEEN and number not in _TOO_BARE
)

# Places whose coordinates the package does not list, although a room with the type has them: how many, as in
# most of ALFWorld's own games.
_UNLISTED = {
    "CoffeeMachine": 1,
    "GarbageCan": 1,
    "HandTowelHolder": 1,
    "LaundryHamper": 1,
    "Ottoman": 1,
    "StoveBurner": 4,
    "Toaster": 1,
    "Toilet": 1,
    "ToiletPaperHanger": 1,
    "TowelHolder": 1,
}
_OPENABLE = frozenset({"Cabinet", "Drawer", "Fridge", "Microwave", "Safe"})
_GRID_STEP = 0.25  # metres
_QUARTER_TURN = 90  # degrees
_HORIZONS = (60, 45, 30, 15)


@dataclass(frozen=True)
class Place:
    """A receptacle: its PDDL id, its type, the location from which it is reached."""

    id: str
    type: str
    location: str

    @property
    def is_openable(self) -> bool:
        return self.type in _OPENABLE


@dataclass(frozen=True)
class FloorPlan:
    """One room of the AI2-THOR set.

    Attributes:
        number: 1-30 kitchens, 201-230 living rooms, 301-330 bedrooms, 401-430 bathrooms.
        places: the receptacles, sorted by id.
        object_types: what is found in the room, sorted.
        free_locations: where an agent can stand without facing a place.
    """

    number: int
    places: tuple[Place, ...]
    object_types: tuple[str, ...]
    free_locations: tuple[str, ...]


def mangle(name: str) -> str:
    """A name of the simulator (`Mug|+01.20|-00.50`) in the spelling of ALFWorld's PDDL files."""
    for char, word in (("|", "_bar_"), ("+", "_plus_"), ("-", "_minus_"), (".", "_dot_")):
        name = name.replace(char, word)
    return name


@cache
def load_floor_plan(number: int) -> FloorPlan:
    """Read one floor plan of the installed alfworld package.

    Raises:
        FileNotFoundError: there is no floor plan of that number.
    """
    folder = files("alfworld") / "gen" / "layouts"
    types = json.loads((folder / f"FloorPlan{number}-objects.json").read_text())
    listed = json.loads((folder / f"FloorPlan{number}-openable.json").read_text())
    points = sorted({(pose[0], pose[1]) for pose in listed.values()})
    places = [Place(mangle(name), _place_type(name), _location(*pose)) for name, pose in listed.items()]
    used = {place.location for place in places}
    poses = product(points, range(0, 360, _QUARTER_TURN), _HORIZONS)
    free = [_location(x, z, rotation, horizon) for (x, z), rotation, horizon in poses]
    free = [location for location in free if location not in used]
    places += _unlisted_places(sorted(types), {place.type for place in places}, points, free)
    used = {place.location for place in places}
    return FloorPlan(
        number,
        tuple(sorted(places, key=lambda place: place.id)),
        tuple(sorted(types)),
        tuple(location for location in free if location not in used),
    )


def _unlisted_places(
    types: list[str], known: set[str], points: list[tuple[float, float]], free: list[str]
) -> list[Place]:
    names = [
        (place_type, copy)
        for place_type in types
        if place_type in _UNLISTED and place_type not in known
        for copy in range(_UNLISTED[place_type])
    ]
    places = []
    for number, (place_type, copy) in enumerate(names):
        # Spread over the room; only the id and a location of its own matter, the coordinates are never read.
        x, z = points[number * len(points) // len(names)]
        name = f"{place_type}|{x:+06.2f}|{0.5 + copy / 10:+06.2f}|{z:+06.2f}"
        places.append(Place(mangle(name), place_type, free[number * len(free) // len(names)]))
    return places


def _place_type(name: str) -> str:
    last = name.rsplit("|", 1)[-1]
    return last if last.endswith("Basin") else name.split("|", 1)[0]


def _location(x: float, z: float, rotation: float, horizon: float) -> str:
    parts = (round(x / _GRID_STEP), round(z / _GRID_STEP), round(rotation / _QUARTER_TURN), round(horizon))
    return mangle("loc|" + "|".join(str(part) for part in parts))
