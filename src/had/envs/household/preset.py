"""The sizes of generated rooms, as plain numbers."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Preset:
    """How large a generated room is. A room never has more than its floor plan offers.

    Attributes:
        name: part of task ids and of the cache folder's name.
        min_places, max_places: receptacles kept of the floor plan; those that the task needs always stay.
        min_objects, max_objects: objects, the task's own and a lamp included; fewer where there is no usual
            spot for more.
        max_copies: objects of one type.
    """

    name: str
    min_places: int
    max_places: int
    min_objects: int
    max_objects: int
    max_copies: int = 3

    def __post_init__(self) -> None:
        for what, low, high in (
            ("places", self.min_places, self.max_places),
            ("objects", self.min_objects, self.max_objects),
        ):
            # The task alone can need three places (an object's, an appliance, a target) and two objects.
            if not 4 <= low <= high:
                got = f"got {low} and {high}"
                raise ValueError(f"preset {self.name!r}: expected 4 <= min_{what} <= max_{what}, {got}")
        if self.max_copies < 2:
            raise ValueError(f"preset {self.name!r}: max_copies must be at least 2, got {self.max_copies}")


# 6-10 places: an exploring agent can finish within 20 turns.
SMALL = Preset("small", min_places=6, max_places=10, min_objects=10, max_objects=18)

# More than any floor plan has (54 places, 63 objects in ALFWorld's own games): nothing is thinned out.
FULL = Preset("full", min_places=99, max_places=99, min_objects=99, max_objects=99)

PRESETS = {preset.name: preset for preset in (SMALL, FULL)}


def find_preset(preset: str | Preset) -> Preset:
    """A preset by its name; a `Preset` of one's own is returned as it is.

    Raises:
        ValueError: unknown name.
    """
    if isinstance(preset, Preset):
        return preset
    if preset not in PRESETS:
        known = ", ".join(PRESETS)
        raise ValueError(f"unknown household preset {preset!r}; known: {known}, or give a Preset")
    return PRESETS[preset]
