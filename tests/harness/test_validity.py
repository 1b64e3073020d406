"""Every verdict, and which one comes first when several apply."""

from __future__ import annotations

import pytest
from steps_by_hand import facts

from had.envs.alfworld.grammar import HouseholdGrammar
from had.harness.validity import EXPLANATIONS, check_command, is_misused
from had.records import Verdict

COMMANDS = ("go to shelf 1", "look", "move mug 1 to desk 1")
GRAMMAR = HouseholdGrammar()


def verdict(command: str | None, commands: tuple[str, ...] = COMMANDS, **changes: object) -> Verdict:
    return check_command(command, commands, facts(**changes), GRAMMAR)


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("look", Verdict.VALID),
        (None, Verdict.UNPARSABLE),
        ("open shelf 1", Verdict.NOT_ADMISSIBLE),
        ("sing a song", Verdict.NOT_ADMISSIBLE),
        ("Look", Verdict.NOT_ADMISSIBLE),
        ("", Verdict.NOT_ADMISSIBLE),
        ("move cup 2 to desk 1", Verdict.NOT_HELD),
        ("heat cup 2 with microwave 1", Verdict.NOT_HELD),
    ],
)
def test_verdicts(command: str | None, expected: Verdict) -> None:
    assert verdict(command) is expected


def test_a_held_object_may_be_used() -> None:
    assert verdict("move mug 1 to desk 1", held=("mug 1",)) is Verdict.VALID
    assert verdict("heat mug 1 with microwave 1", held=("mug 1",)) is Verdict.NOT_ADMISSIBLE


def test_one_failure_in_this_state_is_enough_and_comes_before_admissibility() -> None:
    failed = (("look", 1), ("open shelf 1", 1))
    assert verdict("look", failures=failed) is Verdict.REPEATED_FAILURE
    assert verdict("open shelf 1", failures=failed) is Verdict.REPEATED_FAILURE
    assert verdict("go to shelf 1", failures=failed) is Verdict.VALID


def test_an_object_that_is_not_held_comes_before_a_repeated_failure() -> None:
    command = "move cup 2 to desk 1"
    assert verdict(command, failures=((command, 3),)) is Verdict.NOT_HELD


def test_without_a_list_of_commands_the_grammar_decides() -> None:
    assert verdict("open shelf 1", commands=()) is Verdict.VALID
    assert verdict("sing a song", commands=()) is Verdict.NOT_ADMISSIBLE
    assert verdict("open shelf 1", commands=(), failures=(("open shelf 1", 1),)) is Verdict.REPEATED_FAILURE


def test_misuse() -> None:
    assert is_misused("clean mug 1 with sinkbasin 1", facts(), GRAMMAR)
    assert not is_misused("clean mug 1 with sinkbasin 1", facts(held=("mug 1",)), GRAMMAR)
    assert not is_misused("take mug 1 from desk 1", facts(), GRAMMAR)


def test_every_rejection_can_be_explained_to_the_agent() -> None:
    assert set(EXPLANATIONS) == set(Verdict) - {Verdict.VALID}
