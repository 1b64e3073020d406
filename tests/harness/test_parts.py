"""Every part: what it says, what it warns of, and its threshold at the boundary."""

from __future__ import annotations

import pytest
from steps_by_hand import facts

from had.harness.budget import Budget
from had.harness.failure import MAX_SHOWN_CHARACTERS, Failure
from had.harness.part import BEHAVIOR_MONITORING, STATE_TRACKING, Draw, Part
from had.harness.situation import Situation
from had.harness.stall import Stall
from had.harness.visit import MAX_EARLIER_VISITS, Visit
from had.records import HarnessReport, VisitSummary

SILENT = HarnessReport()


class FirstWording(Draw):
    """Always the first paraphrase."""

    def __init__(self) -> None:
        super().__init__(seed=0, turn=0)

    def choose(self, name, wordings):
        return wordings[0]


def said(part: Part, **changes: object) -> list[tuple[str, str]]:
    return part.sentences(facts(**changes), FirstWording())


def warning(part: Part, **changes: object) -> HarnessReport:
    return part.warn(facts(**changes), SILENT)


def test_situation() -> None:
    assert said(Situation(), held=("mug 1",), visited=("desk 1", "shelf 1")) == [
        (
            STATE_TRACKING,
            "You are at desk 1 and hold mug 1. Visited: desk 1, shelf 1. Not yet visited: drawer 1.",
        )
    ]


def test_situation_of_an_agent_that_is_nowhere_and_of_one_that_was_everywhere() -> None:
    assert said(Situation(nowhere="the void"), location=None, visited=())[0][1] == (
        "You are at the void and hold nothing. Visited: none. Not yet visited: desk 1, drawer 1, shelf 1."
    )
    everywhere = said(Situation(), visited=("shelf 1", "desk 1", "drawer 1"))[0][1]
    assert everywhere.endswith("Visited: shelf 1, desk 1, drawer 1. Not yet visited: none.")


def test_visit() -> None:
    assert said(Visit()) == [(STATE_TRACKING, "This visit began at turn 2, 3 commands so far.")]
    assert said(Visit(), visit_num_commands=1)[0][1].endswith("1 command so far.")
    assert said(Visit(), visit_first_turn=None) == []


def test_revisit() -> None:
    visits = tuple(VisitSummary(turn, turn + turn % 2, 1 + turn % 2) for turn in (1, 4, 7, 10))
    sentences = said(Visit(), earlier_visits=visits)
    assert len(visits) == MAX_EARLIER_VISITS + 1  # the oldest is left out
    assert sentences[1] == (
        STATE_TRACKING,
        "You were here before: turn 4, 1 command; turns 7 to 8, 2 commands; turn 10, 1 command.",
    )


@pytest.mark.parametrize(("turn", "is_urged"), [(20, False), (21, True), (30, True)])
def test_budget_urges_when_fewer_turns_are_left_than_the_threshold(turn: int, is_urged: bool) -> None:
    part = Budget(threshold=11)  # turn 20 of 30: eleven are left, turn 21: ten
    sentences = said(part, turn=turn)
    assert sentences[0] == (STATE_TRACKING, f"Turn {turn} of 30.")
    assert [category for category, _ in sentences[1:]] == [BEHAVIOR_MONITORING] * is_urged
    assert warning(part, turn=turn) == HarnessReport(is_urged=is_urged)
    if is_urged:
        assert f"{31 - turn} turns" in sentences[1][1]


def test_a_budget_of_zero_never_urges() -> None:
    assert len(said(Budget(threshold=0), turn=30)) == 1


@pytest.mark.parametrize(("count", "is_reported"), [(1, False), (2, True), (3, True)])
def test_failures_are_reported_from_the_minimum_of_repeats_on(count: int, is_reported: bool) -> None:
    part = Failure(min_repeats=2)
    failures = (("open desk 1", count), ("fly", 1))
    sentences = said(part, failures=failures)
    assert sentences == [
        (BEHAVIOR_MONITORING, f"Without effect in this state: open desk 1 ({count} times).")
    ] * is_reported  # fmt: skip
    assert warning(part, failures=failures).failures == ("open desk 1",) * is_reported


def test_all_failures_at_least_as_frequent_are_listed() -> None:
    failures = (("open desk 1", 2), ("fly", 1))
    text = said(Failure(min_repeats=1), failures=failures)[0][1]
    assert text.endswith(": open desk 1 (2 times); fly (once).")
    assert warning(Failure(min_repeats=1), failures=failures).failures == ("open desk 1", "fly")


def test_a_long_command_is_shortened_in_the_text_but_not_in_the_report() -> None:
    command = "open\t" + "x" * 10_000 + "{brace}"
    text = said(Failure(min_repeats=1), failures=((command, 1),))[0][1]
    assert "open xxx" in text and "…" in text and len(text) < MAX_SHOWN_CHARACTERS + 60
    assert warning(Failure(min_repeats=1), failures=((command, 1),)).failures == (command,)


@pytest.mark.parametrize(("turns", "is_stalled"), [(0, False), (4, False), (5, True), (6, True)])
def test_stall_from_the_window_on(turns: int, is_stalled: bool) -> None:
    part = Stall(window=5)
    sentences = said(part, turns_without_new_state=turns)
    assert sentences == [(BEHAVIOR_MONITORING, f"Nothing new for {turns} turns.")] * is_stalled
    assert warning(part, turns_without_new_state=turns) == HarnessReport(is_stalled=is_stalled)


def test_parts_without_warnings_leave_the_report_alone() -> None:
    report = HarnessReport(True, ("fly",), True)
    assert Situation().warn(facts(), report) is report
    assert Visit().warn(facts(), report) is report


def test_a_warning_keeps_those_of_other_parts() -> None:
    report = HarnessReport(True, ("fly",), True)
    assert Stall(1).warn(facts(), report) == HarnessReport(True, ("fly",), False)
    assert Budget(0).warn(facts(), report) == HarnessReport(False, ("fly",), True)
    assert Failure(1).warn(facts(), report) == HarnessReport(True, (), True)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Stall(window=0), "stall.window: expected >= 1"),
        (lambda: Budget(threshold=-1), "budget.threshold: expected >= 0"),
        (lambda: Failure(min_repeats=0), "failure.min_repeats: expected >= 1"),
        (lambda: Stall(window=1, wordings=()), "stall.wordings: expected at least one wording"),
        (lambda: Stall(window=1, wordings="Stalled."), "stall.wordings: expected a list of wordings"),
        (lambda: Stall(window=1, wordings=["{turn}"]), r"stall.wordings.*may use \['turns'\]"),
        (lambda: Stall(window=1, wordings=["{turns"]), "does not format"),
        (lambda: Stall(window=1, wordings=["{turns.x}"]), "does not format"),
        (lambda: Stall(window=1, wordings=["{}"]), "does not format"),
        (lambda: Visit(revisit_wordings=["{turn}"]), "visit.revisit_wordings"),
        (lambda: Budget(threshold=1, urge_wordings=["{turn}"]), "budget.urge_wordings"),
    ],
)
def test_wrong_values_are_told_when_a_part_is_built(make, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()
