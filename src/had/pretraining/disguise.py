"""Renames places in an episode's texts: a small model must copy names instead of learning rooms by heart."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence

from had.pretraining.expert import APPLIANCES, type_of
from had.pretraining.goal import parse_goal
from had.prompts.views import Shown, ShownTurn

_NAME = re.compile(r"\b[a-z]+ \d+\b")
_PLACE = re.compile(r"^ [a-z]+ \d+$")  # single tokens of this form are names of places


class PlaceDisguise:
    """The `Disguise` of household games: places take the names of others."""

    def draw(
        self, goal: str, places: Sequence[str], known: Sequence[str], rng: random.Random
    ) -> dict[str, str]:
        return draw_names(goal, places, sorted(name.strip() for name in known if _PLACE.match(name)), rng)

    def text(self, text: str, names: Mapping[str, str]) -> str:
        return disguise_text(text, names)

    def turn(self, turn: ShownTurn, names: Mapping[str, str], reply: str = "") -> Shown:
        return disguise_turn(turn, names, reply)


def draw_names(goal: str, places: Sequence[str], known: Sequence[str], rng: random.Random) -> dict[str, str]:
    """New names for the places of a room.

    Places that the goal names and appliances keep their names, and no other place takes a name of their
    types, so that every thought and command stays right.

    Args:
        goal: the task text.
        places: of the room.
        known: all place names that may be used.
        rng: draws.
    """
    fixed = {parse_goal(goal).target, *APPLIANCES.values()}
    free = [name for name in known if type_of(name) not in fixed]
    renamed = [place for place in places if type_of(place) not in fixed]
    if len(free) < len(renamed):
        return {}
    return dict(zip(renamed, rng.sample(free, len(renamed)), strict=True))


def disguise_text(text: str, names: Mapping[str, str]) -> str:
    """The text with every place renamed at once."""
    return _NAME.sub(lambda match: names.get(match[0], match[0]), text)


def disguise_turn(turn: ShownTurn, names: Mapping[str, str], reply: str = "") -> Shown:
    """The turn with every place renamed; commands are sorted anew."""
    return Shown(
        disguise_text(turn.observation, names),
        tuple(sorted(disguise_text(command, names) for command in turn.commands)),
        disguise_text(turn.harness_text, names),
        disguise_text(reply, names),
    )
