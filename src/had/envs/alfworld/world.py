"""A game in plain Python: `World` never changes while it is played, `Situation` is what commands change."""

from __future__ import annotations

from dataclasses import dataclass, field

from had.envs.alfworld.game import Facts, Game, LightGoal

_ABILITIES = (
    *("openable", "pickupable", "toggleable", "sliceable", "isreceptacleobject"),
    *("cleanable", "heatable", "coolable"),
)


class World:
    """What never changes in a game, in the shape in which a step needs it; entities are PDDL ids, sorted.

    Attributes:
        names: id -> the name the player reads.
        places: the names of all receptacles that stand somewhere, in the engine's order.
        location_of: receptacle -> location; several receptacles may share one.
        receptacles_at: location -> receptacles.
        able: predicate -> the ids it holds for (openable, pickupable…).
        can_contain: (receptacle type, object type).
        inside: object -> what lies in it (such as a fork in a mug).
    """

    def __init__(self, game: Game) -> None:
        facts = game.facts
        self.game = game
        self.names = game.names
        self.location_of = _pairs(facts, "receptacleatlocation")
        self.places = tuple(self.names[receptacle] for receptacle in self.location_of)
        self.receptacles_at: dict[str, list[str]] = {}
        for receptacle, location in self.location_of.items():
            self.receptacles_at.setdefault(location, []).append(receptacle)
        self.receptacle_type = _pairs(facts, "receptacletype")
        self.object_type = _pairs(facts, "objecttype")
        self.able = {ability: {row[0] for row in facts.get(ability, ())} for ability in _ABILITIES}
        self.can_contain = set(facts.get("cancontain", ()))
        self.inside: dict[str, list[str]] = {}
        for inner, outer in sorted(facts.get("inreceptacleobject", ())):
            self.inside.setdefault(outer, []).append(inner)
        self._targets = self._objects_of(game.goal.object_type)
        if isinstance(game.goal, LightGoal):
            self._lamps = self._objects_of(game.goal.lamp_type) & self.able["toggleable"]
        else:
            kind = game.goal.receptacle_type
            self._goal_receptacles = [key for key, value in self.receptacle_type.items() if value == kind]

    def is_won(self, now: Situation) -> bool:
        """True when the goal holds."""
        goal = self.game.goal
        if isinstance(goal, LightGoal):
            if now.held not in self._targets:
                return False
            lit = self._lamps & now.flags["istoggled"]
            here = self.receptacles_at.get(now.location, ())
            return any(lamp in now.contents.get(receptacle, ()) for receptacle in here for lamp in lit)
        targets = self._targets if goal.flag is None else self._targets & now.flags[goal.flag]
        return any(
            len(targets.intersection(now.contents.get(receptacle, ()))) >= goal.count
            for receptacle in self._goal_receptacles
        )

    def _objects_of(self, object_type: str) -> set[str]:
        return {item for item, kind in self.object_type.items() if kind == object_type}


@dataclass(slots=True)
class Situation:
    """What commands change.

    Attributes:
        location: the agent's location id.
        place: the name of the receptacle it last went to, None in the middle of the room.
        held: the held object's id.
        opened: open receptacles.
        contents: receptacle -> objects; the games' own facts can put one object in two receptacles.
        seen_at: location -> objects that `look` may name and a knife can reach there.
        taken_from: object -> receptacles that it was taken from and not put back to.
        flags: isclean, ishot, iscool, issliced, istoggled -> objects.
    """

    location: str
    place: str | None
    held: str | None
    opened: set[str]
    contents: dict[str, set[str]]
    seen_at: dict[str, set[str]]
    flags: dict[str, set[str]]
    taken_from: dict[str, set[str]] = field(default_factory=dict)

    @classmethod
    def start(cls, world: World) -> Situation:
        """The situation at the start of a game."""
        facts = world.game.facts
        location = facts["atlocation"][0][1]
        here = world.receptacles_at.get(location)
        return cls(
            location=location,
            place=world.names[here[0]] if here else None,
            held=None,
            opened={row[0] for row in facts.get("opened", ())},
            contents=_groups(facts, "inreceptacle"),
            seen_at=_groups(facts, "objectatlocation"),
            flags={
                flag: {row[0] for row in facts.get(flag, ())}
                for flag in ("isclean", "ishot", "iscool", "issliced", "istoggled")
            },
        )


def _pairs(facts: Facts, predicate: str) -> dict[str, str]:
    """First argument -> second argument, in the order of the first."""
    return {first: second for first, second in sorted(facts.get(predicate, ()))}


def _groups(facts: Facts, predicate: str) -> dict[str, set[str]]:
    """Second argument -> the first arguments that go with it."""
    groups: dict[str, set[str]] = {}
    for first, second in facts.get(predicate, ()):
        groups.setdefault(second, set()).add(first)
    return groups
