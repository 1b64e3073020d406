"""Rooms, things held and details, from texts that the simulator really wrote."""

from __future__ import annotations

import pytest

from had.envs.scienceworld.situation import details_of, held_things, room_of, rooms_named, thing_name

HALLWAY = (
    "This room is called the hallway. In it, you see: \n\tthe agent\n\ta substance called air\n\ta picture\n"
    "You also see:\n\tA door to the art studio (that is closed)\n\tA door to the bedroom (that is open)\n"
)
OUTSIDE = "This outside location is called the outside. Here you see: \n\tthe agent\n\tan axe\n"


def test_rooms() -> None:
    assert room_of(HALLWAY) == "hallway"
    assert room_of(OUTSIDE) == "outside"
    assert room_of("The fridge is now open.") is None
    assert rooms_named(HALLWAY) == ["art studio", "bedroom"]
    assert rooms_named(OUTSIDE) == []


@pytest.mark.parametrize(
    ("described", "name"),
    [
        ("an orange", "orange"),
        ("a metal pot (containing a substance called water)", "metal pot"),
        ("a thermometer, currently reading a temperature of 10 degrees celsius", "thermometer"),
        ("a stopwatch, which is deactivated. The time reads 0 ticks.", "stopwatch"),
        ("unknown substance B", "unknown substance B"),
        ("a substance called sodium chloride", "sodium chloride"),
        ("A aluminum foil", "aluminum foil"),
        ("A recipe titled instructions to make salt water", "recipe"),
        (
            "a orange wireits terminal 1 is connected to: nothing. its terminal 2 is connected to: nothing.",
            "orange wire",
        ),
        ("a flower pot 8 (containing a cherry tree in the reproducing stage, soil)", "flower pot 8"),
        ("soil", "soil"),
    ],
)
def test_names(described: str, name: str) -> None:
    assert thing_name(described) == name


def test_things_held() -> None:
    assert held_things("In your inventory, you see:\n\tan orange\n\ta dove egg\n") == ("orange", "dove egg")
    assert held_things("In your inventory, you see:\n") == ()


def test_details_ignore_order_and_readings_but_nothing_else() -> None:
    first = (
        "In it, you see: \n\ta thermometer, currently reading a temperature of 10 degrees celsius\n\ta sink"
    )
    second = (
        "In it, you see: \n\ta sink\n\ta thermometer, currently reading a temperature of -3 degrees celsius"
    )
    assert details_of(first) == details_of(second)
    assert details_of("a block approximately 38% down the plane") == details_of(
        "a block approximately 5% down the plane"
    )
    assert details_of("a flower pot 1") != details_of("a flower pot 2")
    assert details_of("a sink, which is turned on.") != details_of("a sink, which is turned off.")
