"""The situation rule of the shop: of the listed commands exactly those break it that can change nothing."""

from __future__ import annotations

import random

import pytest

from had.envs.base import SituationGrammar
from had.envs.webshop.env import WebShopEnv
from had.envs.webshop.generated import GeneratedShop
from had.envs.webshop.grammar import SEARCH_COMMAND, WebShopGrammar
from had.envs.webshop.tasks import WebShopTasks
from had.harness.compose import Harness
from had.harness.conditions import get_condition
from had.harness.tracker import Tracker
from had.harness.validity import check_command, is_misused
from had.records import Effect, EnvStep, Verdict
from had.rollout.game import Game
from scripted_actors import answer, two_lines

GRAMMAR = WebShopGrammar()
QUERIES = ("running shoes", "lamp", "running  shoes", "x" * 120, f"{'x' * 119}y")


def _start() -> tuple[WebShopEnv, EnvStep, Tracker]:
    source = GeneratedShop()
    env, tracker = WebShopEnv(source), Tracker(max_turns=400)
    step = env.reset(WebShopTasks(source, num_test=1).tasks("test")[0])
    tracker.start(step)
    return env, step, tracker


def _product_of(step: EnvStep) -> str:
    return next(c for c in step.commands if c.startswith("click[b0"))


@pytest.mark.parametrize("seed", range(4))
def test_a_listed_command_breaks_the_rule_if_and_only_if_it_has_no_effect(seed: int) -> None:
    rng, outcomes = random.Random(seed), []
    env, step, tracker = _start()
    for _ in range(300):
        commands = [c for c in step.commands if c not in (SEARCH_COMMAND, "click[buy now]")]
        command = rng.choice([*commands, *(f"search[{query}]" for query in QUERIES[:3])])
        is_broken = is_misused(command, tracker.facts(), GRAMMAR)
        step = env.step(command)
        tracker.advance(command, step)
        outcomes.append((command.partition("[")[0], is_broken))
        assert is_broken == (step.effect is Effect.NO_EFFECT), command
    assert {("click", True), ("click", False), ("search", True), ("search", False)} <= set(outcomes)


def test_long_searches_that_share_a_name_are_not_taken_for_one_another() -> None:
    env, _, tracker = _start()
    tracker.advance(f"search[{QUERIES[3]}]", env.step(f"search[{QUERIES[3]}]"))
    assert not is_misused(f"search[{QUERIES[4]}]", tracker.facts(), GRAMMAR)


def test_what_knowledge_of_the_task_would_forbid_is_allowed() -> None:
    env, _, tracker = _start()
    step = env.step("search[running shoes]")
    tracker.advance("search[running shoes]", step)
    product = _product_of(step)
    for command in (product, "click[< prev]", product):  # the second time it was seen already
        assert check_command(command, step.commands, tracker.facts(), GRAMMAR) is Verdict.VALID
        step = env.step(command)
        tracker.advance(command, step)
    assert step.state.places != ()  # nothing is selected
    assert check_command("click[buy now]", step.commands, tracker.facts(), GRAMMAR) is Verdict.VALID


def test_the_verdict_says_that_it_is_so_already() -> None:
    env, _, tracker = _start()
    step = env.step("search[running shoes]")
    tracker.advance("search[running shoes]", step)
    expected = {
        "search[running shoes]": Verdict.ALREADY_SO,
        "search[lamp]": Verdict.VALID,
        "dance": Verdict.NOT_ADMISSIBLE,
    }
    facts = tracker.facts()
    assert {c: check_command(c, step.commands, facts, GRAMMAR) for c in expected} == expected
    assert isinstance(GRAMMAR, SituationGrammar)


def test_a_turn_records_it_and_a_blocking_harness_says_why() -> None:
    source = GeneratedShop()
    task = WebShopTasks(source, num_test=1).tasks("test")[0]
    env = WebShopEnv(source)
    game = Game(task, 0, 15, Harness(), get_condition("hard_block"), GRAMMAR)
    game.start(env.reset(task))
    for _ in range(2):
        command = game.answer((), game.shown(), answer(two_lines("search[running shoes]")))  # type: ignore[arg-type]
        if command is not None:
            game.executed(env.step(command))
    first, second = game.turns
    assert (first.is_misused, second.is_misused, second.is_available) == (False, True, True)
    assert "is so already" in second.feedback
