"""The player of the laboratory reads goals and remembers what it saw; no simulator is needed."""

from __future__ import annotations

import random

import pytest

from had.pretraining.lab_plans import (
    ANIMALS,
    LONG_LIVED,
    MIDDLING,
    SHORT_LIVED,
    FindAnimal,
    FindFurniture,
    FindPlant,
    Measure,
    Plan,
    RankAnimals,
    plan_for,
)
from had.pretraining.lab_words import COLOURS, PLANTS, BoxDisguise, SpeciesDisguise
from had.pretraining.notebook import Notebook
from had.pretraining.player import Decision, Habits
from had.pretraining.scientist import Scientist
from had.records import Effect, EnvState, EnvStep

# goals and answers as the simulator gives them
FIND = "find a(n) {kind}. First, focus on the thing. Then, move it to the red box in the kitchen."
MEASURE = (
    "measure the temperature of unknown substance B, which is located around the living room. First, focus "
    "on the thermometer. Next, focus on the unknown substance B. If the unknown substance B temperature is "
    "above -50.0 degrees celsius, place it in the green box. If the unknown substance B temperature is below "
    "-50.0 degrees celsius, place it in the blue box. The boxes are located around the bathroom."
)
LONGEST = (
    "find the animal with the longest life span.  The animals are in the 'outside' location.  Focus on the "
    "animal with the longest life span."
)
BOTH = (
    "find the animal with the longest life span, then the shortest life span. First, focus on the animal "
    "with the longest life span.  Then, focus on the animal with the shortest life span. The animals are in "
    "the 'outside' location."
)
OUTSIDE = (
    "This outside location is called the outside. Here you see: \n\tthe agent\n\ta substance called air\n"
    "\tan axe\n\ta baby brown bear\n\ta fire pit (containing nothing)\n\tthe ground\n\ta baby mouse\n"
    "\ta baby wolf\nYou also see:\n\tA door to the kitchen (that is closed)"
)
GREENHOUSE = (
    "This room is called the greenhouse. In it, you see: \n\tthe agent\n"
    "\ta flower pot 1 (containing nothing)\n"
    "\ta flower pot 5 (containing a apple tree in the adult stage, soil)\n"
    "\ta flower pot 8 (containing a pea plant in the adult stage with a tall height, soil)\nYou also see:\n"
    "\tA door to the outside (that is closed)"
)


def state(observation: str, room: str, *held: str, effect: Effect = Effect.INFORMATIONAL) -> EnvStep:
    return EnvStep(observation, (), EnvState(room, held), effect)


@pytest.mark.parametrize(
    ("goal", "plan"),
    [
        (FIND.format(kind="animal"), FindAnimal("animal", "red box", "kitchen")),
        (FIND.format(kind="living thing"), FindAnimal("living thing", "red box", "kitchen")),
        (FIND.format(kind="non-living thing"), FindFurniture("red box", "kitchen")),
        (FIND.format(kind="plant"), FindPlant("red box", "kitchen")),
        (
            MEASURE,
            Measure("unknown substance B", "living room", -50.0, "green box", "blue box", "bathroom"),
        ),
        (LONGEST, RankAnimals(("longest",))),
        (BOTH, RankAnimals(("longest", "shortest"))),
    ],
)
def test_goals_are_read(goal: str, plan: Plan) -> None:
    assert plan_for(goal) == plan


def test_other_tasks_are_refused() -> None:
    with pytest.raises(ValueError, match=r"got 'boil water\.'; choose the tasks of configs/env"):
        plan_for("boil water.")


def test_every_animal_has_one_life_span() -> None:
    ranked = [*LONG_LIVED, *MIDDLING, *SHORT_LIVED]
    assert len(ranked) == len(set(ranked)) == 15 and set(ranked) < set(ANIMALS)


def test_a_look_is_remembered_until_a_command_is_refused_there() -> None:
    notes = Notebook(state(OUTSIDE, "outside"))
    assert notes.looks["outside"][3:5] == ("baby brown bear", "fire pit (containing nothing)")
    assert "door" not in " ".join(notes.looks["outside"])
    notes.take("focus on baby mouse", state("You focus on the baby mouse.", "outside"))
    assert notes.focused == ["baby mouse"] and "outside" in notes.looks
    refused = state("No known action matches that input.", "outside", effect=Effect.NO_EFFECT)
    notes.take("focus on dove egg", refused)
    assert notes.refused == "focus on dove egg" and not notes.looks
    notes.take(None, state("You focus on the baby wolf.", "outside"))
    assert notes.refused is None and notes.focused[-1] == "baby wolf"


def test_a_temperature_belongs_to_what_was_measured() -> None:
    notes = Notebook(state("You teleport to the kitchen.", "kitchen"))
    reading = state("the thermometer measures a temperature of -57 degrees celsius", "kitchen")
    notes.take("use thermometer on unknown substance B", reading)
    assert notes.readings == {"unknown substance B": -57}


def decisions(goal: str, *answers: tuple[str | None, EnvStep]) -> list[Decision]:
    """What a good player says at each state; the commands are whoever's."""
    player = Scientist()
    player.start(goal, answers[0][1])
    said = [player.decide()]
    for command, step in answers[1:]:
        player.observe(command, step)
        said.append(player.decide())
    return said


def test_the_longest_then_the_shortest_life() -> None:
    first, second = decisions(
        BOTH,
        (None, state(OUTSIDE, "outside")),
        ("focus on baby brown bear", state("You focus on the baby brown bear.", "outside")),
    )
    assert first == Decision(
        "The animal with the longest life span: baby brown bear.", "focus on baby brown bear"
    )
    assert second.command == "focus on baby mouse"


def test_a_plant_is_carried_in_its_pot() -> None:
    focused = state("You focus on the apple tree.", "greenhouse")
    carried = state("You teleport to the kitchen.", "kitchen", "flower pot 5", "orange")
    said = decisions(
        FIND.format(kind="plant"),
        (None, state(GREENHOUSE, "greenhouse")),
        ("focus on apple tree", focused),
        ("teleport kitchen", carried),
    )
    commands = [decision.command for decision in said]
    assert commands == ["focus on apple tree", "pick up flower pot 5", "move flower pot 5 to red box"]


@pytest.mark.parametrize(("degrees", "box"), [(-57, "blue box"), (-50, "blue box"), (3, "green box")])
def test_the_temperature_decides_the_box(degrees: int, box: str) -> None:
    held = ("thermometer", "unknown substance B")
    reading = state(f"the thermometer measures a temperature of {degrees} degrees celsius", "bathroom", *held)
    said = decisions(
        MEASURE,
        (None, state("You focus on the thermometer.", "bathroom", *held)),
        ("focus on it", state("You focus on the unknown substance B.", "bathroom", *held)),
        ("use thermometer on unknown substance B", reading),
    )
    assert [decision.command for decision in said] == [
        "focus on unknown substance B",
        "use thermometer on unknown substance B",
        f"move unknown substance B to {box}",
    ]
    assert f"{degrees} degrees celsius is" in said[-1].thought and said[-1].thought.endswith(f"{box}.")


def test_a_refused_command_is_not_said_again() -> None:
    refused = state("No known action matches that input.", "kitchen", effect=Effect.NO_EFFECT)
    said = decisions(MEASURE, (None, state("You see nothing.", "kitchen")), ("pick up thermometer", refused))
    assert [decision.command for decision in said] == ["pick up thermometer", "look around"]


def test_a_forgetful_player_never_acts() -> None:
    player = Scientist(Habits(forgetfulness=1.0), random.Random(0))
    player.start(LONGEST, state(OUTSIDE, "outside"))
    assert {player.decide().command for _ in range(20)} == {"look around"}


def test_boxes_exchange_their_colours_and_nothing_else() -> None:
    names = dict(zip(COLOURS, (*COLOURS[1:], COLOURS[0]), strict=True))
    text = "In hand: orange. move red apple to red box, not to the orange box, a red light bulb"
    changed = BoxDisguise().text(text, names)
    assert changed == text.replace("red box", "yellow box").replace("orange box", "purple box")
    drawn = BoxDisguise().draw("", (), (), random.Random(0))
    assert sorted(drawn) == sorted(drawn.values()) == sorted(COLOURS)


def test_animals_and_plants_exchange_their_names_too() -> None:
    names = {"ant": "blue jay", "blue jay": "wolf egg", "frog": "baby ant"}
    names |= {"apple tree": "pea plant", "red": "green"}
    text = "a baby ant, a blue jay egg, a frog, an elephant, a apple tree, a red apple, red box"
    changed = SpeciesDisguise().text(text, names)
    assert changed == "a blue jay, a wolf egg, a baby ant, an elephant, a pea plant, a red apple, green box"


def test_where_life_spans_are_asked_for_animals_keep_their_group() -> None:
    def species(name: str) -> str:
        return name.removeprefix("baby ").removesuffix(" egg")

    draws = [SpeciesDisguise().draw(LONGEST, (), (), random.Random(seed)) for seed in range(20)]
    for group in (LONG_LIVED, MIDDLING, SHORT_LIVED, PLANTS):
        assert all({species(drawn[name]) for name in group} == set(group) for drawn in draws)
        assert len({tuple(drawn[name] for name in group) for drawn in draws}) > 10
    free = [SpeciesDisguise().draw("find a(n) animal", (), (), random.Random(seed)) for seed in range(20)]
    assert any(species(drawn["ant"]) not in SHORT_LIVED for drawn in free)
    forms = {drawn["ant"].partition(" ")[0] == "baby" for drawn in free}
    assert forms == {True, False}
