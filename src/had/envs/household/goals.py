"""The six task types: what they need, how they are said and how they are written as PDDL goals."""

from __future__ import annotations

from dataclasses import dataclass

from alfworld.gen import goal_library

from had.envs.household.catalogue import (
    GOAL_PLACES,
    LAMP,
    ONE_OBJECT_PLACES,
    SINGLE,
    can_contain,
    found_in,
    properties,
)
from had.envs.household.floor_plans import FloorPlan


@dataclass(frozen=True)
class TaskType:
    """What tells one task type from another.

    Attributes:
        name: ALFWorld's name.
        property: PDDL predicate that the object needs.
        appliance: type of place at which the object is treated, or an empty string.
        verb: the command of that treatment.
        num_objects: how many objects are to be brought.
        target: the one thing that the goal names besides the object; empty where it is any place.
    """

    name: str
    property: str = "pickupable"
    appliance: str = ""
    verb: str = ""
    num_objects: int = 1
    target: str = ""


TASK_TYPES = (
    TaskType("pick_and_place_simple"),
    TaskType("look_at_obj_in_light", target=LAMP),
    TaskType("pick_clean_then_place_in_recep", "cleanable", "SinkBasin", "clean"),
    TaskType("pick_heat_then_place_in_recep", "heatable", "Microwave", "heat"),
    TaskType("pick_cool_then_place_in_recep", "coolable", "Fridge", "cool"),
    TaskType("pick_two_obj_and_place", num_objects=2),
)


@dataclass(frozen=True)
class Goal:
    """One task: its type, the object's type, the type of the place (or lamp), which of the two sentences."""

    task: TaskType
    object_type: str
    target: str
    wording: int

    @property
    def text(self) -> str:
        """The task as the agent reads it."""
        templates = goal_library.gdict[self.task.name]["templates"]
        words = {"obj": self.object_type.lower(), "recep": self.target.lower(), "toggle": self.target.lower()}
        return templates[self.wording].format(**words) + "."

    @property
    def pddl(self) -> str:
        """The goal block. The library writes `#` for `-` and closes the parenthesis of `(define` as well."""
        block = goal_library.gdict[self.task.name]["pddl"]
        return block.replace("#", "-").format(obj=self.object_type, recep=self.target, toggle=self.target)


def possible_goals(plan: FloorPlan, task: TaskType) -> dict[str, tuple[str, ...]]:
    """For each type of object that the room can give this task, the targets it allows (both sorted)."""
    kinds = {place.type for place in plan.places}
    if task.appliance and task.appliance not in kinds:
        return {}
    goals = {}
    for object_type in plan.object_types:
        sources = {kind for kind in found_in(object_type) if kind in kinds}
        if task.property not in properties(object_type) or (task.num_objects > 1 and object_type in SINGLE):
            continue
        targets = [target for target in _targets(plan, task, object_type) if sources - {target}]
        if targets:
            goals[object_type] = tuple(targets)
    return goals


def _targets(plan: FloorPlan, task: TaskType, object_type: str) -> list[str]:
    kinds = {place.type for place in plan.places}
    if task.target:
        is_there = task.target in plan.object_types and any(kind in kinds for kind in found_in(task.target))
        return [task.target] if is_there else []
    allowed = [kind for kind in sorted(kinds & GOAL_PLACES) if can_contain(kind, object_type)]
    too_small = ONE_OBJECT_PLACES if task.num_objects > 1 else frozenset()
    return [kind for kind in allowed if kind != task.appliance and kind not in too_small]
