"""`NativeEnv`: ALFWorld's text games in plain Python, command for command what the TextWorld engine answers.

Several rules look odd because they are the engine's: lists are sorted by lower-cased PDDL id, `look` names an object
only after it has been taken from a place here, `use` always turns on, appliances need not be open, and going to the
place where one stands is refused. The differential test holds this file to the engine.
"""

from __future__ import annotations

from collections.abc import Sequence

from had.envs.alfworld.game import Game, LightGoal, PlaceGoal, read_game
from had.envs.base import EnvFailure
from had.records import Effect, EnvState, EnvStep, Task

NOTHING_HAPPENS = "Nothing happens."
_HELP = """Available commands:
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
_KNIFE_TYPES = frozenset({"knifetype", "butterknifetype"})

# verb, then the ids it works on
_Action = tuple[str, ...]
_APPLIANCE_VERBS = (
    ("clean", "cleanobject", "cleanable"),
    ("heat", "heatobject", "heatable"),
    ("cool", "coolobject", "coolable"),
)


class _World:
    """What never changes in a game, in the shape in which a step needs it."""

    def __init__(self, game: Game) -> None:
        facts = game.facts
        self.game = game
        self.names = game.names
        self.location_of = dict(facts.get("receptacleatlocation", ()))
        self.receptacles_at: dict[str, list[str]] = {}
        for receptacle in sorted(self.location_of):
            self.receptacles_at.setdefault(self.location_of[receptacle], []).append(receptacle)
        self.places = tuple(self.names[receptacle] for receptacle in sorted(self.location_of))
        self.receptacle_type = dict(facts.get("receptacletype", ()))
        self.object_type = dict(facts.get("objecttype", ()))
        self.can_contain = set(facts.get("cancontain", ()))
        self.abilities = {
            predicate: {row[0] for row in facts.get(predicate, ())}
            for predicate in ("openable", "pickupable", "toggleable", "sliceable", "isreceptacleobject")
            + ("cleanable", "heatable", "coolable")
        }
        self.inside: dict[str, list[str]] = {}
        for inner, outer in sorted(facts.get("inreceptacleobject", ())):
            self.inside.setdefault(outer, []).append(inner)
        self._travels: dict[str, dict[str, _Action]] = {}

    def travels(self, location: str) -> dict[str, _Action]:
        """The commands that are possible at a location whatever has happened before."""
        found = self._travels.get(location)
        if found is None:
            found = {"look": ("look",), "inventory": ("inventory",), "help": ("help",)}
            for receptacle, there in self.location_of.items():
                if there != location:
                    found[f"go to {self.names[receptacle]}"] = ("go", receptacle)
            self._travels[location] = found
        return found


class NativeEnv:
    """A `TextEnv` over game files, without an engine, a subprocess or a cache: about 0.05 ms a step."""

    def __init__(self) -> None:
        self._world: _World | None = None

    def reset(self, task: Task) -> EnvStep:
        return self.reset_game(read_game(task.source))

    def reset_game(self, game: Game) -> EnvStep:
        """Start a game that has been read already."""
        self._world = _World(game)
        facts = game.facts
        self._location = facts["atlocation"][0][1]
        here = self._world.receptacles_at.get(self._location)
        self._place = self._world.names[here[0]] if here else None
        self._held: str | None = None
        self._opened = {row[0] for row in facts.get("opened", ())}
        self._contents: dict[str, set[str]] = {}
        for item, receptacle in facts.get("inreceptacle", ()):
            self._contents.setdefault(receptacle, set()).add(item)
        self._seen_at: dict[str, set[str]] = {}
        for item, location in facts.get("objectatlocation", ()):
            self._seen_at.setdefault(location, set()).add(item)
        self._taken_from: dict[str, set[str]] = {}
        self._flags = {
            flag: {row[0] for row in facts.get(flag, ())}
            for flag in ("isclean", "ishot", "iscool", "issliced", "istoggled")
        }
        self._actions = self._applicable()
        self._commands = tuple(sorted(self._actions))
        self._is_won = self._reaches_goal()
        return self._answer(self._look_from_start(), Effect.CHANGED)

    def step(self, command: str) -> EnvStep:
        if self._world is None:
            raise EnvFailure("step() was called before reset(): start a task first")
        action = self._actions.get(command.strip())
        if action is None:
            return self._answer(NOTHING_HAPPENS, Effect.NO_EFFECT)
        before = (self._place, self._held, self._commands)
        observation = getattr(self, f"_{action[0]}")(*action[1:])
        self._actions = self._applicable()
        self._commands = tuple(sorted(self._actions))
        self._is_won = self._reaches_goal()
        is_changed = before != (self._place, self._held, self._commands)
        return self._answer(observation, Effect.CHANGED if is_changed else Effect.INFORMATIONAL)

    def close(self) -> None:
        self._world = None

    @property
    def _here(self) -> list[str]:
        assert self._world is not None
        return self._world.receptacles_at.get(self._location, [])

    def _answer(self, observation: str, effect: Effect) -> EnvStep:
        world = self._world
        assert world is not None
        held = () if self._held is None else (world.names[self._held],)
        return EnvStep(
            observation=observation,
            commands=self._commands,
            state=EnvState(self._place, held, world.places),
            effect=effect,
            reward=float(self._is_won),
            score=100.0 * self._is_won,
            is_done=self._is_won,
            is_won=self._is_won,
        )

    # ---- which commands are possible

    def _applicable(self) -> dict[str, _Action]:
        world = self._world
        assert world is not None
        names = world.names
        actions = dict(world.travels(self._location))
        for receptacle in self._here:
            name = names[receptacle]
            actions[f"examine {name}"] = ("examine_receptacle", receptacle)
            is_openable = receptacle in world.abilities["openable"]
            if is_openable:
                verb = "close" if receptacle in self._opened else "open"
                actions[f"{verb} {name}"] = (verb, receptacle)
            contents = self._contents.get(receptacle, ())
            for item in world.abilities["toggleable"].intersection(contents):
                actions[f"use {names[item]}"] = ("use", item)
            if self._held is not None:
                self._add_uses_of_held(actions, receptacle, is_reachable=not is_openable or verb == "close")
            elif not is_openable or verb == "close":
                for item in world.abilities["pickupable"].intersection(contents):
                    actions[f"take {names[item]} from {name}"] = ("take", item, receptacle)
        if self._held is not None:
            actions[f"examine {names[self._held]}"] = ("examine_object", self._held)
            self._add_slicing(actions)
        return actions

    def _add_uses_of_held(self, actions: dict[str, _Action], receptacle: str, is_reachable: bool) -> None:
        world, held = self._world, self._held
        assert world is not None and held is not None
        item_name, place_name = world.names[held], world.names[receptacle]
        kind = world.receptacle_type.get(receptacle, "")
        if is_reachable and (kind, world.object_type.get(held, "")) in world.can_contain:
            actions[f"move {item_name} to {place_name}"] = ("move", held, receptacle)
        for verb, name, ability in _APPLIANCE_VERBS:
            if kind in world.game.appliances[name] and held in world.abilities[ability]:
                actions[f"{verb} {item_name} with {place_name}"] = (verb, held, receptacle)

    def _add_slicing(self, actions: dict[str, _Action]) -> None:
        world, knife = self._world, self._held
        assert world is not None and knife is not None
        if world.object_type.get(knife) in _KNIFE_TYPES:
            for item in world.abilities["sliceable"].intersection(self._seen_at.get(self._location, ())):
                actions[f"slice {world.names[item]} with {world.names[knife]}"] = ("slice", item, knife)

    # ---- what a command does and says

    def _go(self, receptacle: str) -> str:
        assert self._world is not None
        self._location = self._world.location_of[receptacle]
        self._place = self._world.names[receptacle]
        return f"You arrive at {self._place}. {self._examine_receptacle(receptacle)}"

    def _open(self, receptacle: str) -> str:
        self._opened.add(receptacle)
        return f"You open the {self._name(receptacle)}. {self._examine_receptacle(receptacle)}"

    def _close(self, receptacle: str) -> str:
        self._opened.discard(receptacle)
        return f"You close the {self._name(receptacle)}."

    def _take(self, item: str, receptacle: str) -> str:
        self._contents[receptacle].discard(item)
        self._taken_from.setdefault(item, set()).add(receptacle)
        self._seen_at.get(self._location, set()).discard(item)
        self._held = item
        return f"You pick up the {self._name(item)} from the {self._name(receptacle)}."

    def _move(self, item: str, receptacle: str) -> str:
        self._contents.setdefault(receptacle, set()).add(item)
        self._taken_from.get(item, set()).discard(receptacle)
        self._seen_at.setdefault(self._location, set()).add(item)
        self._held = None
        return f"You move the {self._name(item)} to the {self._name(receptacle)}."

    def _clean(self, item: str, receptacle: str) -> str:
        self._flags["isclean"].add(item)
        return f"You clean the {self._name(item)} using the {self._name(receptacle)}."

    def _heat(self, item: str, receptacle: str) -> str:
        self._flags["ishot"].add(item)
        self._flags["iscool"].discard(item)
        return f"You heat the {self._name(item)} using the {self._name(receptacle)}."

    def _cool(self, item: str, receptacle: str) -> str:
        self._flags["iscool"].add(item)
        self._flags["ishot"].discard(item)
        return f"You cool the {self._name(item)} using the {self._name(receptacle)}."

    def _use(self, item: str) -> str:
        self._flags["istoggled"].add(item)
        return f"You turn on the {self._name(item)}."

    def _slice(self, item: str, knife: str) -> str:
        self._flags["issliced"].add(item)
        return f"You sliced the {self._name(item)} with the {self._name(knife)}."

    def _help(self) -> str:
        return _HELP

    def _inventory(self) -> str:
        if self._held is None:
            return "You are not carrying anything."
        return f"You are carrying: a {self._name(self._held)}."

    def _look(self) -> str:
        if not self._here:
            # The engine looks for receptacles at the agent's own spot here, and there are none.
            return self._describe_room(())
        items = self._seen_at.get(self._location, set())
        listed = [
            item
            for item in sorted(items.intersection(self._taken_from))
            for receptacle in self._here
            if receptacle in self._taken_from[item]
        ]
        places = _join([self._name(receptacle) for receptacle in self._here])
        return f"You are facing the {places}. Next to it, you see {self._list(listed)}."

    def _look_from_start(self) -> str:
        assert self._world is not None
        return self._look() if self._here else self._describe_room(sorted(self._world.location_of))

    def _describe_room(self, receptacles: Sequence[str]) -> str:
        return f"You are in the middle of a room. Looking quickly around you, you see {self._list(receptacles)}."

    def _examine_receptacle(self, receptacle: str) -> str:
        assert self._world is not None
        contents = sorted(self._contents.get(receptacle, ()))
        if receptacle not in self._world.abilities["openable"]:
            return f"On the {self._name(receptacle)}, you see {self._list(contents)}."
        if receptacle not in self._opened:
            return f"The {self._name(receptacle)} is closed."
        return f"The {self._name(receptacle)} is open. In it, you see {self._list(contents)}."

    def _examine_object(self, item: str) -> str:
        assert self._world is not None
        name, abilities = self._name(item), self._world.abilities
        if item in abilities["isreceptacleobject"]:
            return f"This is a normal {name}. In it, you see {self._list(self._world.inside.get(item, ()))}."
        is_clean, is_hot, is_cool, is_sliced, is_toggled = (item in held for held in self._flags.values())
        warmth = "hot" if is_hot else "cool" if is_cool and (is_clean or is_sliced) else "cold" if is_cool else ""
        words = [*([warmth] if warmth else []), *(["clean"] if is_clean else [])]
        if words:
            return f"This is a {' and '.join(words)} {'sliced ' if is_sliced else ''}{name}."
        if item in abilities["toggleable"] and is_toggled:
            return f"This {name} is on."
        if item in abilities["sliceable"] and is_sliced:
            return f"This is a sliced {name}."
        return f"There's nothing special about {name}."

    def _name(self, identity: str) -> str:
        assert self._world is not None
        return self._world.names[identity]

    def _list(self, ids: Sequence[str]) -> str:
        return _join([f"a {self._name(identity)}" for identity in ids])

    # ---- the goal

    def _reaches_goal(self) -> bool:
        assert self._world is not None
        goal = self._world.game.goal
        return self._lit(goal) if isinstance(goal, LightGoal) else self._placed(goal)

    def _lit(self, goal: LightGoal) -> bool:
        world = self._world
        assert world is not None
        if self._held is None or world.object_type.get(self._held) != goal.object_type:
            return False
        lamps = [
            item
            for item in self._flags["istoggled"] & world.abilities["toggleable"]
            if world.object_type.get(item) == goal.lamp_type
        ]
        return any(lamp in self._contents.get(receptacle, ()) for receptacle in self._here for lamp in lamps)

    def _placed(self, goal: PlaceGoal) -> bool:
        world = self._world
        assert world is not None
        for receptacle, kind in world.receptacle_type.items():
            if kind == goal.receptacle_type:
                items = self._contents.get(receptacle, set())
                if goal.flag is not None:
                    items = items & self._flags[goal.flag]
                if sum(world.object_type.get(item) == goal.object_type for item in items) >= goal.count:
                    return True
        return False


def _join(words: Sequence[str]) -> str:
    if not words:
        return "nothing"
    return ", ".join(words[:-1]) + ", and " + words[-1] if len(words) > 1 else words[0]
