"""What each evaluation condition shows, blocks and leaves as it is."""

from __future__ import annotations

import pytest
from steps_by_hand import facts

from had.harness.conditions import CONDITIONS, FULL, get_condition
from tiny_world import quick_harness

KNOWN = facts(turn=28, failures=(("fly", 2),), turns_without_new_state=3)
STATE = ("isited", "so far", "urn 28")  # in a wording of situation, visit and the turn counter
BEHAVIOR = ("3 turns", "fly (2 times)")  # urge (three turns are left), stall, failure


def shown(name: str) -> str:
    return quick_harness().text(KNOWN, seed=1, condition=get_condition(name))


def test_the_conditions_of_the_paper() -> None:
    assert list(CONDITIONS) == ["full", "off", "no_state_tracking", "no_behavior_monitoring", "hard_block"]
    assert get_condition("full") is FULL
    assert [name for name, condition in CONDITIONS.items() if condition.is_blocking] == ["hard_block"]


def test_what_is_shown() -> None:
    full, state, behavior = shown("full"), shown("no_behavior_monitoring"), shown("no_state_tracking")
    assert shown("hard_block") == full and shown("off") == ""
    assert all(text in full for text in (*STATE, *BEHAVIOR))
    assert all(text in state for text in STATE) and not any(text in state for text in BEHAVIOR)
    assert all(text in behavior for text in BEHAVIOR) and not any(text in behavior for text in STATE)


def test_hiding_a_category_does_not_change_the_other_sentences() -> None:
    full = shown("full")
    for name in ("no_state_tracking", "no_behavior_monitoring"):
        for sentence in shown(name).split(". "):
            assert sentence.rstrip(".") in full


def test_the_report_does_not_depend_on_what_is_shown() -> None:
    report = quick_harness().report(KNOWN)
    assert report.is_urged and report.is_stalled and report.failures == ("fly",)


def test_an_unknown_condition_names_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"expected one of .*'full'.*'off'.*got 'none'"):
        get_condition("none")
