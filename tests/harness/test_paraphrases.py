"""Paraphrases: three of each sentence, drawn reproducibly, all of them reachable."""

from __future__ import annotations

from collections import Counter

import pytest
from steps_by_hand import facts

from had.harness import budget, failure, situation, stall, visit
from had.harness.budget import Budget
from had.harness.failure import Failure
from had.harness.part import NUM_PARAPHRASES, Draw
from had.harness.situation import Situation
from had.harness.stall import Stall
from had.harness.visit import Visit
from had.records import VisitSummary

WORDINGS = {
    "situation": situation.WORDINGS,
    "visit": visit.WORDINGS,
    "revisit": visit.REVISIT_WORDINGS,
    "budget": budget.WORDINGS,
    "urge": budget.URGE_WORDINGS,
    "failure": failure.WORDINGS,
    "stall": stall.WORDINGS,
}
PARTS = {
    "situation": Situation(),
    "visit": Visit(),
    "budget": Budget(30),
    "failure": Failure(1),
    "stall": Stall(1),
}
EVERYTHING = {
    "earlier_visits": (VisitSummary(1, 2, 1),),
    "failures": (("fly", 1),),
    "turns_without_new_state": 9,
    "turn": 7,
}


@pytest.mark.parametrize("name", WORDINGS)
def test_every_sentence_has_three_different_wordings(name: str) -> None:
    assert len(set(WORDINGS[name])) == len(WORDINGS[name]) == NUM_PARAPHRASES


@pytest.mark.parametrize("name", WORDINGS)
def test_all_wordings_are_drawn_about_equally_often(name: str) -> None:
    draws = [Draw(seed, turn) for seed in range(30) for turn in range(1, 31)]
    drawn = Counter(draw.choose(name, WORDINGS[name]) for draw in draws)
    assert set(drawn) == set(WORDINGS[name])
    assert min(drawn.values()) > 0.8 * 900 / NUM_PARAPHRASES


@pytest.mark.parametrize("name", PARTS)
def test_a_part_says_all_its_paraphrases_and_the_same_for_the_same_seed_and_turn(name: str) -> None:
    known = facts(**EVERYTHING)
    texts = [tuple(PARTS[name].sentences(known, Draw(seed, 7))) for seed in range(60)]
    again = [tuple(PARTS[name].sentences(known, Draw(seed, 7))) for seed in range(60)]
    assert texts == again
    for position in range(len(texts[0])):
        assert len({sentences[position] for sentences in texts}) == NUM_PARAPHRASES


def test_seed_turn_and_name_each_matter() -> None:
    wordings = tuple("abc")
    by_turn = {tuple(Draw(s, t).choose("x", wordings) for t in range(20)) for s in range(20)}
    by_name = {tuple(Draw(s, 3).choose(n, wordings) for s in range(20)) for n in ("x", "y", "z")}
    assert len(by_turn) == 20 and len(by_name) == 3


def test_the_choice_is_the_same_on_every_machine() -> None:
    assert [Draw(12345, turn).choose("stall", tuple("abc")) for turn in range(1, 9)] == list("ccabccca")
