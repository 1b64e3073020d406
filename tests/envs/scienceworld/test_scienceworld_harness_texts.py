"""What the harness says in the laboratory: configs/harness/scienceworld.yaml over real episodes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from had.envs.scienceworld.grammar import ScienceWorldGrammar
from had.harness.compose import Harness
from had.harness.tracker import Tracker
from had.harness.validity import check_command
from had.records import HarnessFacts, Task, Verdict

_CONFIG = Path(__file__).resolve().parents[3] / "configs" / "harness" / "scienceworld.yaml"
_TASK = Task("t", "train", "boil", "", "boil/0")


@pytest.fixture(scope="module")
def harness() -> Harness:
    plain = yaml.safe_load(_CONFIG.read_text(encoding="utf-8"))
    return Harness.from_yaml(yaml.safe_dump({"parts": plain["parts"]}, sort_keys=False))


def _facts_after(env: Any, *commands: str) -> tuple[HarnessFacts, tuple[str, ...]]:
    """The tracker's facts and the listed commands after some commands."""
    tracker = Tracker(max_turns=15)
    step = env.reset(_TASK)
    tracker.start(step)
    for command in commands:
        step = env.step(command)
        tracker.advance(command, step)
    return tracker.facts(), step.commands


def test_thresholds_are_those_of_the_paper(harness: Harness) -> None:
    parts = harness.parts
    assert parts["stall"].window == 8  # type: ignore[attr-defined]
    assert parts["budget"].threshold == 11  # type: ignore[attr-defined]
    assert parts["failure"].min_repeats == 2  # type: ignore[attr-defined]


@pytest.mark.java
def test_rooms_inventory_and_refusals(env: Any, harness: Harness) -> None:
    facts, _ = _facts_after(env, "teleport to kitchen", "pick up thermometer", "read stove", "read stove")
    assert harness.text(facts, seed=3) == (
        "You are in the kitchen and hold orange, thermometer. Rooms visited: hallway, kitchen. Known but not "
        "yet visited: art studio, bedroom, greenhouse, living room, workshop. Here since turn 2, 3 commands "
        "so far. Current turn: 5 of 15. Without effect in this state: read stove (2 times)."
    )


@pytest.mark.java
def test_a_stall_needs_eight_turns_and_a_changed_room_is_no_stall(env: Any, harness: Harness) -> None:
    looking = ["look around", "inventory"] * 4
    assert harness.report(_facts_after(env, *looking)[0]).is_stalled
    assert not harness.report(_facts_after(env, *looking[1:])[0]).is_stalled
    assert not harness.report(_facts_after(env, *looking[1:], "open door to kitchen")[0]).is_stalled


@pytest.mark.java
def test_the_urge_comes_with_the_fifth_turn_but_one(env: Any, harness: Harness) -> None:
    assert harness.report(_facts_after(env, *["look around"] * 5)[0]).is_urged
    assert not harness.report(_facts_after(env, *["look around"] * 4)[0]).is_urged


@pytest.mark.java
def test_the_validity_check_knows_the_state_of_the_room(env: Any) -> None:
    grammar = ScienceWorldGrammar()

    def verdict(command: str, *before: str) -> Verdict:
        facts, commands = _facts_after(env, "teleport to kitchen", *before)
        return check_command(command, commands, facts, grammar)

    juice = "pick up wood cup"
    assert verdict(juice) is Verdict.VALID
    assert verdict(juice, juice) is Verdict.REPEATED_FAILURE
    assert (
        verdict(juice, juice, "open fridge") is Verdict.VALID
    )  # another state: the same command may work now
    assert verdict("use thermometer in inventory on sink") is Verdict.NOT_HELD
    assert verdict("fly") is Verdict.NOT_ADMISSIBLE
    assert verdict("look around", "get orange") is Verdict.NOT_ADMISSIBLE  # a number was asked for
    assert verdict("0", "get orange") is Verdict.VALID
