"""The grammar: what it takes for a command, and that the simulator's parser takes every form of it."""

from __future__ import annotations

from typing import Any

import pytest

from had.envs.scienceworld.grammar import ScienceWorldGrammar
from had.envs.scienceworld.refusals import is_unavailable
from had.envs.scienceworld.templates import FORMS, TEMPLATES
from had.records import Task

GRAMMAR = ScienceWorldGrammar()


@pytest.mark.parametrize(
    "command",
    [
        "look around",
        "Open Door to Kitchen",
        "pour jug into flower pot 3",
        "use thermometer in inventory on substance in metal pot",
        "connect battery anode to black wire terminal 1",
        "teleport to art studio",
        "wait1",
        "0",
    ],
)
def test_commands(command: str) -> None:
    assert GRAMMAR.accepts(command)


@pytest.mark.parametrize(
    "command", ["", "open", "fly to kitchen", "use stopwatch", "wait 10", "look at", "go"]
)
def test_other_texts(command: str) -> None:
    assert not GRAMMAR.accepts(command)


@pytest.mark.parametrize(
    ("command", "needed"),
    [
        ("use thermometer in inventory on substance in metal pot", "thermometer"),
        ("focus on unknown substance B in inventory", "unknown substance B"),
        ("use axe on orange in inventory", "orange"),
        ("move soap in inventory to metal pot", "soap"),
        ("activate stopwatch in inventory", "stopwatch"),
        ("move component in inventory to red box", None),  # the name of a kind
        ("drop orange", None),  # it is moved to the room from wherever it is
        ("look in inventory", None),
        ("move orange to inventory", None),
    ],
)
def test_what_is_called_in_inventory_must_be_held(command: str, needed: str | None) -> None:
    assert GRAMMAR.required_object(command) == needed


def test_what_only_shows_something_again_is_idle() -> None:
    idle = (
        "look around",
        "look at fridge",
        "look in fridge",
        "examine soap",
        "inventory",
        "task",
        "help",
        "objects",
    )
    assert all(GRAMMAR.is_idle(command) for command in idle)
    assert not any(
        GRAMMAR.is_idle(command) for command in ("read recipe", "wait", "wait1", "open door to hallway")
    )


def test_only_numbers_answer_a_question() -> None:
    assert GRAMMAR.is_listed("1", ("0", "1"))
    assert not GRAMMAR.is_listed("look around", ("0", "1"))


_DESTINATION = ("go", "walk", "teleport")
_SECOND = {"connect": "table", "use": "sink"}


def _example(form: str) -> str:
    """A command of this form about things of the kitchen."""
    verb, rest = form.split()[0], form.split()[1:]
    if verb in _DESTINATION or (verb == "move" and rest[0] != "OBJ"):
        return form.replace("OBJ", "hallway")
    first = {"connect": "sink", "use": "thermometer", "pour": "glass cup"}.get(verb, "glass jar")
    return form.replace("OBJ", first, 1).replace("OBJ", _SECOND.get(verb, "sink"))


@pytest.mark.java
def test_the_templates_are_the_simulators(env: Any) -> None:
    env.reset(Task("t", "train", "boil", "", "boil/0"))
    listed = list(env.load(Task("t", "train", "boil", "", "boil/0")).getPossibleActions())
    assert [action for action in listed if action != "reset task"] == list(TEMPLATES)


@pytest.mark.slow
@pytest.mark.java
def test_the_simulator_takes_every_form(env: Any) -> None:
    refused = []
    for form in FORMS:
        env.reset(Task("t", "train", "boil", "", "boil/0"))
        env.step("teleport to kitchen")
        assert GRAMMAR.accepts(_example(form))
        answer = env.step(_example(form))
        if is_unavailable(answer.observation) or answer.commands:
            refused.append((form, answer.observation))
    assert refused == []


@pytest.mark.java
@pytest.mark.parametrize("command", ["use stopwatch", "fly to kitchen", "wait 10", "inv", "open"])
def test_the_simulator_refuses_what_the_grammar_refuses(env: Any, command: str) -> None:
    env.reset(Task("t", "train", "boil", "", "boil/0"))
    env.step("teleport to kitchen")
    assert not GRAMMAR.accepts(command)
    assert is_unavailable(env.step(command).observation)
