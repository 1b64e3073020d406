"""Where household objects are usually found, and what ALFWorld allows to be put and done where."""

from __future__ import annotations

from functools import cache

from alfworld.gen import constants

# Share (per cent) of an object's copies found in a type of place, in rooms that have that type: measured over
# ALFWorld's own training games. Objects and places that are not here are left out of generated rooms.
_FOUND_IN = {
    "AlarmClock": "DiningTable:56 Desk:47 Dresser:38 CounterTop:34 Shelf:31 SideTable:30",
    "Apple": "DiningTable:27 CounterTop:25 Fridge:24 SideTable:17 Microwave:13 GarbageCan:12 SinkBasin:9",
    "Book": (
        "CounterTop:59 Bed:51 CoffeeTable:32 Desk:28 DiningTable:20 Sofa:17 Dresser:16 "
        "Cabinet:14 ArmChair:10 Drawer:10 SideTable:7 TVStand:5 Shelf:3"
    ),
    "Bowl": (
        "Desk:62 Cabinet:36 Dresser:29 TVStand:29 DiningTable:28 CoffeeTable:27 CounterTop:21 "
        "Fridge:20 Shelf:19 SideTable:6 Microwave:3 SinkBasin:3"
    ),
    "Box": (
        "Desk:53 DiningTable:51 CoffeeTable:27 Sofa:24 Shelf:19 Cabinet:17 Dresser:9 Ottoman:9 "
        "SideTable:9 TVStand:9 ArmChair:3"
    ),
    "Bread": "CounterTop:55 DiningTable:55 Fridge:12 SideTable:6 GarbageCan:1",
    "ButterKnife": "CounterTop:59 DiningTable:46 SideTable:16 Drawer:8 SinkBasin:5",
    "CD": (
        "DiningTable:50 Dresser:30 Desk:29 Drawer:29 SideTable:20 Cabinet:15 Shelf:11 "
        "ArmChair:10 GarbageCan:8"
    ),
    "Candle": (
        "SideTable:48 CounterTop:35 Cabinet:31 Toilet:30 CoffeeTable:28 Shelf:28 Drawer:22 "
        "Cart:21 DiningTable:20 TVStand:18 Dresser:15"
    ),
    "CellPhone": (
        "CounterTop:38 DiningTable:31 Bed:29 Desk:25 Dresser:22 Drawer:21 Ottoman:21 "
        "CoffeeTable:20 TVStand:16 SideTable:15 Sofa:14 ArmChair:13 Shelf:12 Safe:7 Cabinet:2"
    ),
    "Cloth": (
        "Cabinet:46 BathtubBasin:42 Drawer:25 CounterTop:19 Cart:17 Shelf:16 Dresser:15 "
        "SinkBasin:8 SideTable:3 Toilet:3"
    ),
    "CreditCard": (
        "CounterTop:43 Drawer:27 Desk:26 Dresser:23 Shelf:23 DiningTable:21 SideTable:19 "
        "Sofa:19 TVStand:19 CoffeeTable:18 ArmChair:15 Ottoman:9"
    ),
    "Cup": (
        "DiningTable:25 Cabinet:23 CounterTop:21 Fridge:21 SideTable:17 Shelf:10 SinkBasin:9 Microwave:7"
    ),
    "DeskLamp": "SideTable:65 Desk:42 Dresser:37 CoffeeTable:20 Shelf:14",
    "DishSponge": (
        "CounterTop:26 Cabinet:24 DiningTable:23 Drawer:22 BathtubBasin:21 Cart:14 Shelf:14 "
        "SinkBasin:8 Toilet:8 SideTable:7 GarbageCan:5"
    ),
    "Egg": "Fridge:25 CounterTop:24 DiningTable:21 SideTable:14 GarbageCan:13 SinkBasin:13 Microwave:12",
    "Fork": "CounterTop:44 DiningTable:41 Drawer:23 SideTable:15 SinkBasin:9",
    "Glassbottle": "Cabinet:31 DiningTable:30 CounterTop:27 Shelf:13 Fridge:9 SinkBasin:9 GarbageCan:7",
    "HandTowel": "HandTowelHolder:96 CounterTop:4",
    "Kettle": "StoveBurner:41 CounterTop:25 Cabinet:24 DiningTable:17 Shelf:2 SinkBasin:2",
    "KeyChain": (
        "Desk:26 Drawer:25 Dresser:25 CoffeeTable:24 SideTable:22 DiningTable:21 Shelf:21 "
        "TVStand:21 Safe:15 Sofa:12 ArmChair:11 Ottoman:11 CounterTop:4 Cabinet:3"
    ),
    "Knife": "CounterTop:48 DiningTable:44 Drawer:21 SideTable:8 SinkBasin:5",
    "Ladle": "CounterTop:41 DiningTable:31 Cabinet:25 Drawer:19 SinkBasin:2",
    "Laptop": (
        "Bed:74 DiningTable:33 CoffeeTable:30 Sofa:27 CounterTop:26 Desk:26 TVStand:14 "
        "Dresser:13 Ottoman:10 ArmChair:5 SideTable:4"
    ),
    "Lettuce": "DiningTable:50 CounterTop:41 Fridge:23 SideTable:14 SinkBasin:5 GarbageCan:1",
    "Mug": (
        "Desk:54 CounterTop:33 Dresser:28 DiningTable:24 SideTable:20 Cabinet:19 Fridge:16 "
        "Shelf:16 Microwave:9 SinkBasin:7 CoffeeMachine:1"
    ),
    "Newspaper": (
        "DiningTable:32 Dresser:29 Shelf:25 CoffeeTable:22 Sofa:20 SideTable:16 Ottoman:13 "
        "TVStand:11 ArmChair:8 Drawer:2"
    ),
    "Pan": "StoveBurner:48 CounterTop:32 DiningTable:10 Cabinet:9 Fridge:5",
    "PaperTowelRoll": "CounterTop:56 DiningTable:41 Shelf:32 Toilet:31 Cart:26 SideTable:23 GarbageCan:15",
    "Pen": (
        "DiningTable:50 Desk:40 CounterTop:37 CoffeeTable:34 Dresser:33 Shelf:23 SideTable:22 "
        "Drawer:18 TVStand:18 GarbageCan:2"
    ),
    "Pencil": (
        "DiningTable:39 Desk:33 CounterTop:30 SideTable:28 CoffeeTable:27 Dresser:25 Shelf:25 "
        "Drawer:21 TVStand:14 GarbageCan:6"
    ),
    "PepperShaker": "Cabinet:33 CounterTop:30 DiningTable:29 SideTable:21 Shelf:16 Drawer:15",
    "Pillow": "Bed:99 Sofa:80 ArmChair:14 Ottoman:1",
    "Plate": (
        "Cabinet:40 DiningTable:33 CounterTop:30 CoffeeTable:24 Shelf:12 TVStand:11 Fridge:9 "
        "SideTable:7 Dresser:6 SinkBasin:2 Microwave:1"
    ),
    "Pot": "StoveBurner:70 CounterTop:15 DiningTable:9 Fridge:5 Cabinet:4 Shelf:2 SinkBasin:1",
    "Potato": "CounterTop:28 DiningTable:28 Fridge:26 SideTable:12 SinkBasin:11 Microwave:10 GarbageCan:6",
    "RemoteControl": (
        "Desk:37 CounterTop:33 CoffeeTable:29 DiningTable:22 TVStand:22 Dresser:21 Sofa:19 "
        "SideTable:16 Ottoman:11 Drawer:10 ArmChair:9 Shelf:8"
    ),
    "SaltShaker": "Cabinet:32 CounterTop:32 DiningTable:31 SideTable:22 Drawer:14 Shelf:14",
    "SoapBar": (
        "SideTable:36 Cabinet:27 CounterTop:22 Cart:19 Drawer:19 BathtubBasin:18 Shelf:16 "
        "Toilet:16 SinkBasin:15 GarbageCan:7"
    ),
    "SoapBottle": (
        "DiningTable:36 CounterTop:33 Cabinet:32 Dresser:30 Toilet:24 Shelf:23 SideTable:15 "
        "Cart:13 GarbageCan:10 Drawer:2"
    ),
    "Spatula": "CounterTop:45 DiningTable:43 Drawer:22 SinkBasin:9 SideTable:6",
    "Spoon": "CounterTop:38 DiningTable:38 Drawer:28 SideTable:16 SinkBasin:11",
    "SprayBottle": (
        "SideTable:48 Cart:40 DiningTable:39 CounterTop:37 Cabinet:35 Toilet:27 Shelf:26 "
        "Dresser:20 GarbageCan:10"
    ),
    "Statue": (
        "CounterTop:51 Desk:42 Shelf:41 CoffeeTable:31 DiningTable:31 Dresser:29 SideTable:26 TVStand:25"
    ),
    "TeddyBear": "Bed:100",
    "TissueBox": (
        "CoffeeTable:46 Desk:45 CounterTop:43 DiningTable:37 Shelf:33 Cabinet:26 TVStand:22 "
        "Cart:20 SideTable:19 Drawer:17 Dresser:8 Toilet:3 GarbageCan:1"
    ),
    "ToiletPaper": (
        "CounterTop:26 Cabinet:25 SideTable:25 Toilet:23 Shelf:22 Cart:21 Drawer:20 Dresser:20 "
        "ToiletPaperHanger:12 GarbageCan:9"
    ),
    "Tomato": "DiningTable:34 Fridge:33 CounterTop:30 SideTable:15 GarbageCan:9 SinkBasin:7",
    "Towel": "TowelHolder:97 CounterTop:3",
    "Vase": (
        "Dresser:55 Shelf:41 CounterTop:34 Cabinet:28 CoffeeTable:24 DiningTable:21 Desk:18 "
        "SideTable:18 TVStand:15"
    ),
    "Watch": "DiningTable:29 Drawer:28 TVStand:28 CoffeeTable:27 Desk:27 Dresser:25 Shelf:21 SideTable:20",
    "WateringCan": "CoffeeTable:53 Shelf:38 SideTable:9",
    "WineBottle": "CounterTop:37 DiningTable:35 Cabinet:25 GarbageCan:9 Shelf:8 Fridge:1 SideTable:1",
}

# Objects of which a room has one, whatever the preset allows.
SINGLE = frozenset({"PaperTowelRoll", "TeddyBear", "Towel", "WateringCan", "DeskLamp"})

# Places that hold one object.
ONE_OBJECT_PLACES = frozenset(
    {"HandTowelHolder", "TowelHolder", "ToiletPaperHanger", "StoveBurner", "CoffeeMachine"}
)

# Places that ALFWorld's goals name.
GOAL_PLACES = frozenset(
    {
        "ArmChair",
        "Bed",
        "Cabinet",
        "Cart",
        "CoffeeMachine",
        "CoffeeTable",
        "CounterTop",
        "Desk",
        "DiningTable",
        "Drawer",
        "Dresser",
        "Fridge",
        "GarbageCan",
        "Microwave",
        "Ottoman",
        "Safe",
        "Shelf",
        "SideTable",
        "Sofa",
        "StoveBurner",
        "Toilet",
        "ToiletPaperHanger",
    }
)

# The lamp that ALFWorld's look_at_obj_in_light games use; it cannot be picked up.
LAMP = "DeskLamp"

_CONTAINERS = frozenset({"Bowl", "Box", "Cup", "Mug", "Pan", "Plate", "Pot"})


@cache
def found_in(object_type: str) -> dict[str, int]:
    """Types of place where an object is usually found, with their weights; empty for an unknown object."""
    pairs = (entry.split(":") for entry in _FOUND_IN.get(object_type, "").split())
    return {place_type: int(weight) for place_type, weight in pairs}


def can_contain(place_type: str, object_type: str) -> bool:
    """Whether ALFWorld allows the object to be put there."""
    return object_type in constants.VAL_RECEPTACLE_OBJECTS.get(place_type, ())


def properties(object_type: str) -> tuple[str, ...]:
    """PDDL predicates that hold for every object of a type."""
    if object_type == LAMP:
        return ("toggleable",)
    allowed = constants.VAL_ACTION_OBJECTS
    names = [
        name.lower()
        for name in ("Cleanable", "Heatable", "Coolable", "Sliceable")
        if object_type in allowed[name]
    ]
    containers = ["isReceptacleObject"] if object_type in _CONTAINERS else []
    return ("pickupable", *containers, *names)
