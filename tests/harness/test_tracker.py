"""The tracker on sequences whose facts are known by hand."""

from __future__ import annotations

import pytest
from steps_by_hand import PLACES, refused, step

from had.harness.tracker import Tracker
from had.records import Effect, HarnessFacts, VisitSummary


def start(max_turns: int = 10, location: str | None = None) -> Tracker:
    tracker = Tracker(max_turns)
    tracker.start(step(location))
    return tracker


def test_facts_of_the_first_turn() -> None:
    assert Tracker(10).start(step()) == HarnessFacts(
        turn=1,
        max_turns=10,
        location=None,
        held=(),
        places=PLACES,
        visited=(),
        visit_first_turn=None,
        visit_num_commands=0,
        earlier_visits=(),
        failures=(),
        turns_without_new_state=0,
    )


def test_a_start_at_a_place_is_a_visit_from_turn_one() -> None:
    facts = start(location="desk 1").facts()
    assert (facts.visited, facts.visit_first_turn, facts.visit_num_commands) == (("desk 1",), 1, 0)


def test_turns_left_includes_the_current_turn() -> None:
    tracker = start(max_turns=3)
    assert tracker.facts().turns_left == 3
    tracker.advance("look", step())
    tracker.advance("look", step())
    assert (tracker.facts().turn, tracker.facts().turns_left) == (3, 1)


def test_visits_are_summarised_when_a_place_is_seen_again() -> None:
    tracker = start()
    tracker.advance("go to desk 1", step("desk 1"))  # turn 1
    tracker.advance("look", step("desk 1", effect=Effect.INFORMATIONAL))  # turn 2
    tracker.advance("go to shelf 1", step("shelf 1"))  # turn 3 ends the visit of the desk
    assert tracker.facts().earlier_visits == ()
    assert (tracker.facts().visit_first_turn, tracker.facts().visit_num_commands) == (4, 0)
    tracker.advance("go to desk 1", step("desk 1"))  # turn 4
    facts = tracker.facts()
    assert facts.earlier_visits == (VisitSummary(first_turn=2, last_turn=3, num_commands=2),)
    assert (facts.visit_first_turn, facts.visited) == (5, ("desk 1", "shelf 1"))
    tracker.advance("go to shelf 1", step("shelf 1"))
    assert tracker.facts().earlier_visits == (VisitSummary(4, 4, 1),)


def test_leaving_all_places_ends_a_visit_without_beginning_one() -> None:
    tracker = start(location="desk 1")
    tracker.advance("stand up", step(None))
    facts = tracker.facts()
    assert (facts.visit_first_turn, facts.visit_num_commands, facts.earlier_visits) == (None, 0, ())
    tracker.advance("go to desk 1", step("desk 1"))
    assert tracker.facts().earlier_visits == (VisitSummary(1, 1, 1),)


def test_failures_belong_to_the_state_in_which_they_happened() -> None:
    tracker = start()
    tracker.advance("open shelf 1", refused())
    tracker.advance("open shelf 1", refused())
    tracker.advance("fly", refused())
    assert tracker.facts().failures == (("open shelf 1", 2), ("fly", 1))
    tracker.advance("go to desk 1", step("desk 1"))
    assert tracker.facts().failures == ()
    tracker.advance("fly", refused("desk 1"))
    assert tracker.facts().failures == (("fly", 1),)
    tracker.advance("leave", step())  # the state of the beginning again
    assert tracker.facts().failures == (("open shelf 1", 2), ("fly", 1))


@pytest.mark.parametrize(
    "other",
    [step("desk 1"), step(held="mug 1"), step(commands="look,help")],
    ids=["location", "held", "commands"],
)
def test_each_element_of_the_key_makes_another_state(other) -> None:
    tracker = start()
    tracker.advance("fly", refused())
    assert tracker.advance("x", other) is True
    assert tracker.facts().failures == ()
    assert tracker.facts().turns_without_new_state == 0


def test_stalls_count_turns_since_a_state_was_first_seen() -> None:
    tracker = start()
    counts = []
    for command, answer in [
        ("look", step(effect=Effect.INFORMATIONAL)),
        ("fly", refused()),
        ("go to desk 1", step("desk 1")),
        ("go to shelf 1", step("shelf 1")),
        ("go to desk 1", step("desk 1")),  # changed, but seen before
        ("go to shelf 1", step("shelf 1")),
        ("take mug 1", step("shelf 1", held="mug 1")),
    ]:
        is_new = tracker.advance(command, answer)
        counts.append((is_new, tracker.facts().turns_without_new_state))
    assert counts == [
        (False, 1), (False, 2), (True, 0), (True, 0), (False, 1), (False, 2), (True, 0),
    ]  # fmt: skip


def test_a_reply_without_a_command_costs_a_turn_and_is_no_command_and_no_failure() -> None:
    tracker = start(location="desk 1")
    assert tracker.advance(None, refused("desk 1")) is False
    facts = tracker.facts()
    assert (facts.turn, facts.visit_num_commands, facts.failures) == (2, 0, ())
    assert facts.turns_without_new_state == 1


def test_a_blocked_command_is_a_failure_and_a_command_of_the_visit() -> None:
    tracker = start(location="desk 1")
    tracker.advance("open desk 1", refused("desk 1"))
    facts = tracker.facts()
    assert (facts.visit_num_commands, facts.failures) == (1, (("open desk 1", 1),))


def test_an_episode_lasts_at_least_one_turn() -> None:
    with pytest.raises(ValueError, match="max_turns: expected >= 1, got 0"):
        Tracker(0)
