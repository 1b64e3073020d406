"""A hand-made kitchen in ALFWorld's format, small enough to know every answer by heart.

It holds on purpose what real games hold rarely: two receptacles at one spot, an object in two receptacles, a
cup with a fork in it, an apple that is cool from the start, a knife and something to slice.
"""

from __future__ import annotations

import json
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from had.records import Task

GOALS = {
    "pick_and_place_simple": """(exists (?r - receptacle) (exists (?o - object) (and
        (inReceptacle ?o ?r) (objectType ?o CupType) (receptacleType ?r DrawerType))))""",
    "pick_clean_then_place_in_recep": """(exists (?r - receptacle) (exists (?o - object) (and
        (cleanable ?o) (objectType ?o AppleType) (receptacleType ?r FridgeType) (isClean ?o)
        (inReceptacle ?o ?r))))""",
    "pick_heat_then_place_in_recep": """(exists (?r - receptacle) (exists (?o - object) (and
        (heatable ?o) (objectType ?o AppleType) (receptacleType ?r CounterTopType) (isHot ?o)
        (inReceptacle ?o ?r))))""",
    "pick_cool_then_place_in_recep": """(exists (?r - receptacle) (exists (?o - object) (and
        (coolable ?o) (objectType ?o AppleType) (receptacleType ?r MicrowaveType) (isCool ?o)
        (inReceptacle ?o ?r))))""",
    "pick_two_obj_and_place": """(exists (?r - receptacle) (exists (?o1 - object) (and
        (objectType ?o1 AppleType) (receptacleType ?r SinkBasinType) (inReceptacle ?o1 ?r)
        (exists (?o2 - object) (and (not (= ?o1 ?o2)) (objectType ?o2 AppleType)
        (receptacleType ?r SinkBasinType) (inReceptacle ?o2 ?r))))))""",
    "look_at_obj_in_light": """(exists (?ot - object ?r - receptacle ?a - agent ?l - location) (and
        (objectType ?ot DeskLampType) (toggleable ?ot) (isToggled ?ot) (receptacleAtLocation ?r ?l)
        (atLocation ?a ?l) (inReceptacle ?ot ?r)))
        (exists (?o - object ?a - agent) (and (objectType ?o CupType) (holds ?a ?o)))""",
}

_PROBLEM = """
(define (problem tiny)
(:domain alfred)
(:objects
  agent1 - agent
  loc_bar_0 loc_bar_1 loc_bar_2 loc_bar_3 - location
  Fridge_bar_1 - receptacle
  Microwave_bar_1 - receptacle
  Sink_bar_1_bar_SinkBasin - receptacle
  CounterTop_bar_1 - receptacle
  CounterTop_bar_2 - receptacle
  Drawer_bar_1 - receptacle
  Apple_bar_1 - object
  Apple_bar_2 - object
  Cup_bar_1 - object
  Fork_bar_1 - object
  Knife_bar_1 - object
  DeskLamp_bar_1 - object
  FridgeType MicrowaveType SinkBasinType SinkType CounterTopType DrawerType - rtype
  AppleType CupType ForkType KnifeType ButterKnifeType DeskLampType - otype
)
(:init
  (= (total-cost) 0)
  (atLocation agent1 loc_bar_0)
  (receptacleType Fridge_bar_1 FridgeType) (receptacleAtLocation Fridge_bar_1 loc_bar_1)
  (receptacleType Microwave_bar_1 MicrowaveType) (receptacleAtLocation Microwave_bar_1 loc_bar_2)
  (receptacleType Sink_bar_1_bar_SinkBasin SinkBasinType)
  (receptacleAtLocation Sink_bar_1_bar_SinkBasin loc_bar_3)
  (receptacleType CounterTop_bar_1 CounterTopType) (receptacleAtLocation CounterTop_bar_1 loc_bar_2)
  (receptacleType CounterTop_bar_2 CounterTopType) (receptacleAtLocation CounterTop_bar_2 loc_bar_3)
  (receptacleType Drawer_bar_1 DrawerType) (receptacleAtLocation Drawer_bar_1 loc_bar_3)
  (openable Fridge_bar_1) (openable Microwave_bar_1) (openable Drawer_bar_1)
  (opened Drawer_bar_1)
  (objectType Apple_bar_1 AppleType) (objectType Apple_bar_2 AppleType) (objectType Cup_bar_1 CupType)
  (objectType Fork_bar_1 ForkType) (objectType Knife_bar_1 KnifeType) (objectType DeskLamp_bar_1 DeskLampType)
  (pickupable Apple_bar_1) (pickupable Apple_bar_2) (pickupable Cup_bar_1) (pickupable Knife_bar_1)
  (cleanable Apple_bar_1) (heatable Apple_bar_1) (coolable Apple_bar_1) (sliceable Apple_bar_1)
  (cleanable Apple_bar_2) (heatable Apple_bar_2) (coolable Apple_bar_2) (sliceable Apple_bar_2)
  (cleanable Cup_bar_1) (isReceptacleObject Cup_bar_1) (inReceptacleObject Fork_bar_1 Cup_bar_1)
  (toggleable DeskLamp_bar_1) (isCool Apple_bar_1)
  (inReceptacle Apple_bar_1 Fridge_bar_1) (objectAtLocation Apple_bar_1 loc_bar_1)
  (inReceptacle Apple_bar_2 CounterTop_bar_2) (inReceptacle Apple_bar_2 Sink_bar_1_bar_SinkBasin)
  (objectAtLocation Apple_bar_2 loc_bar_3)
  (inReceptacle Cup_bar_1 CounterTop_bar_1) (objectAtLocation Cup_bar_1 loc_bar_2)
  (inReceptacle Knife_bar_1 CounterTop_bar_2) (objectAtLocation Knife_bar_1 loc_bar_3)
  (inReceptacle DeskLamp_bar_1 CounterTop_bar_1) (objectAtLocation DeskLamp_bar_1 loc_bar_2)
  {contains}
)
(:goal (and {goal}))
)
"""


@cache
def _wheel_text(name: str) -> str:
    """A data file of the alfworld package, read without importing the package."""
    spec = find_spec("alfworld")
    assert spec is not None and spec.submodule_search_locations
    return (Path(spec.submodule_search_locations[0]) / "data" / name).read_text()


def tiny_game(task_type: str = "pick_and_place_simple") -> dict[str, object]:
    """The JSON object of the tiny game with the goal of a task type."""
    contains = " ".join(
        f"(canContain {place}Type {thing}Type)"
        for place in ("Fridge", "Microwave", "SinkBasin", "CounterTop", "Drawer")
        for thing in ("Apple", "Cup", "Knife")
        if (place, thing) != ("Drawer", "Apple")
    )
    return {
        "pddl_domain": _wheel_text("alfred.pddl"),
        "grammar": _wheel_text("alfred.twl2").replace("UNKNOWN GOAL", f"do {task_type}"),
        "pddl_problem": _PROBLEM.format(contains=contains, goal=GOALS[task_type]),
        "solvable": True,
        "walkthrough": [],
    }


def write_tiny_game(folder: Path, task_type: str = "pick_and_place_simple") -> Task:
    """Write the tiny game into a folder and return its task."""
    path = folder / "game.tw-pddl"
    path.write_text(json.dumps(tiny_game(task_type)))
    return Task(f"tiny/{task_type}", "train", task_type, f"do {task_type}.", str(path))
