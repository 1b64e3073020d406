"""Which commands are possible in a situation: the preconditions of ALFWorld's PDDL domain."""

from __future__ import annotations

from had.envs.alfworld import effects
from had.envs.alfworld.effects import Action
from had.envs.alfworld.world import Situation, World

# The command templates that this simulator speaks; older ALFWorld data says "put {o} in/on {r}".
TEMPLATES = {
    "OpenObject": "open {r}",
    "CloseObject": "close {r}",
    "PickupObject": "take {o} from {r}",
    "PutObject": "move {o} to {r}",
    "inventory": "inventory",
    "examineReceptacle": "examine {r}",
    "examineObject": "examine {o}",
    "ToggleObject": "use {o}",
    "HeatObject": "heat {o} with {r}",
    "CleanObject": "clean {o} with {r}",
    "CoolObject": "cool {o} with {r}",
    "SliceObject": "slice {co} with {ko}",
    "look": "look",
    "help": "help",
}
_KNIFE_TYPES = frozenset({"knifetype", "butterknifetype"})
_TREATMENTS = (
    ("clean", effects.clean, "cleanobject", "cleanable"),
    ("heat", effects.heat, "heatobject", "heatable"),
    ("cool", effects.cool, "coolobject", "coolable"),
)


class Commands:
    """The possible commands of one game; what depends on the location alone is remembered."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._always_at: dict[str, dict[str, Action]] = {}

    def possible(self, now: Situation) -> dict[str, Action]:
        """Command -> what it does, for every command that would not be refused now."""
        actions = self._always(now.location).copy()
        for receptacle in self._world.receptacles_at.get(now.location, ()):
            self._add_at_receptacle(actions, now, receptacle)
        if now.held is not None:
            actions[f"examine {self._world.names[now.held]}"] = (effects.examine_object, (now.held,))
            self._add_slicing(actions, now, now.held)
        return actions

    def _always(self, location: str) -> dict[str, Action]:
        """What is possible at a location whatever happened before; going to where one stands is refused."""
        found = self._always_at.get(location)
        if found is None:
            found = {
                "look": (effects.look, ()),
                "inventory": (effects.inventory, ()),
                "help": (effects.show_help, ()),
            }
            for receptacle, there in self._world.location_of.items():
                name = self._world.names[receptacle]
                if there == location:
                    found[f"examine {name}"] = (effects.examine_receptacle, (receptacle,))
                else:
                    found[f"go to {name}"] = (effects.go, (receptacle,))
            self._always_at[location] = found
        return found

    def _add_at_receptacle(self, actions: dict[str, Action], now: Situation, receptacle: str) -> None:
        world = self._world
        name = world.names[receptacle]
        is_openable, is_opened = receptacle in world.able["openable"], receptacle in now.opened
        if is_openable and is_opened:
            actions[f"close {name}"] = (effects.close_receptacle, (receptacle,))
        elif is_openable:
            actions[f"open {name}"] = (effects.open_receptacle, (receptacle,))
        is_reachable = is_opened or not is_openable
        contents = now.contents.get(receptacle, ())
        for item in world.able["toggleable"].intersection(contents):
            actions[f"use {world.names[item]}"] = (effects.use, (item,))
        if now.held is not None:
            self._add_uses_of_held(actions, now.held, receptacle, is_reachable)
        elif is_reachable:
            for item in world.able["pickupable"].intersection(contents):
                actions[f"take {world.names[item]} from {name}"] = (effects.take, (item, receptacle))

    def _add_uses_of_held(
        self, actions: dict[str, Action], held: str, receptacle: str, is_reachable: bool
    ) -> None:
        world = self._world
        item, place = world.names[held], world.names[receptacle]
        kind = world.receptacle_type.get(receptacle, "")
        if is_reachable and (kind, world.object_type.get(held, "")) in world.can_contain:
            actions[f"move {item} to {place}"] = (effects.move, (held, receptacle))
        for verb, effect, name, ability in _TREATMENTS:
            if kind in world.game.appliances[name] and held in world.able[ability]:
                actions[f"{verb} {item} with {place}"] = (effect, (held, receptacle))

    def _add_slicing(self, actions: dict[str, Action], now: Situation, knife: str) -> None:
        world = self._world
        if world.object_type.get(knife) in _KNIFE_TYPES:
            for item in world.able["sliceable"].intersection(now.seen_at.get(now.location, ())):
                command = f"slice {world.names[item]} with {world.names[knife]}"
                actions[command] = (effects.slice_object, (item, knife))
