"""The imitated shopper: reads goals and pages, buys well, and badly when told to."""

from __future__ import annotations

import random

import pytest
from small_recipes import LACKING

if LACKING:
    pytest.skip(f"the shop needs {', '.join(LACKING)}: pip install -e '.[webshop]'", allow_module_level=True)

from had.envs.webshop.env import WebShopEnv
from had.envs.webshop.generated import GeneratedShop
from had.envs.webshop.tasks import WebShopTasks
from had.pretraining.player import Habits
from had.pretraining.shopper import BUY, Shopper, read_offers
from had.pretraining.shopping_list import ShoppingList, read_goal
from had.records import Effect, EnvStep

SHOP = GeneratedShop()
TASKS = WebShopTasks(SHOP, num_test=200, num_validation=100).tasks("train")[:80]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "Find me quick drying hoodies with color: grey, and size: xl, and price lower than 70.00 dollars",
            ShoppingList("quick drying hoodies", {"color": "grey", "size": "xl"}, 70.0),
        ),
        ("Find me high definition action cameras", ShoppingList("high definition action cameras")),
        (
            "Find me machine wash, men's shirts with classic fit with size: 3x | tall, and price lower than "
            "40.00 dollars",
            ShoppingList("machine wash men's shirts with classic fit", {"size": "3x | tall"}, 40.0),
        ),
        (
            "Find me tea with flavor: salt, and pepper, and size: 1 pack",
            ShoppingList("tea", {"flavor": "salt, and pepper", "size": "1 pack"}),
        ),
        ("i need a lamp that is cheap.", ShoppingList("a lamp that is cheap")),
        ("", ShoppingList("")),
    ],
)
def test_goals_are_read(text: str, expected: ShoppingList) -> None:
    assert read_goal(text) == expected


def test_every_goal_of_the_shop_is_read_as_it_was_made() -> None:
    for goal in SHOP.open().goals:
        found = read_goal(goal.text)
        assert found.values == goal.options
        assert found.price_limit == (goal.price_limit if "price lower" in goal.text else float("inf"))
        assert all(attribute in found.wanted for attribute in goal.attributes)


def test_a_page_of_results_is_read() -> None:
    env = WebShopEnv(SHOP)
    env.reset(TASKS[0])
    step = env.step("search[running shoes]")
    listed = env.session.listed
    offers = read_offers(step.observation)
    assert [(offer.asin, offer.title) for offer in offers] == [(p.asin.lower(), p.title) for p in listed]
    assert [offer.price for offer in offers] == [product.price_range[1] for product in listed]
    assert read_offers(env.step(f"click[{offers[0].asin}]").observation) == []


def rewards(habits: Habits) -> list[float]:
    env, found = WebShopEnv(SHOP), []
    for number, task in enumerate(TASKS):
        shopper, step = Shopper(habits, random.Random(number)), env.reset(task)
        shopper.start(task.goal, step)
        for _ in range(15):
            command = shopper.decide().command
            step = env.step(command)
            if step.is_done:
                break
            shopper.observe(command, step)
        found.append(step.reward)
    return found


def test_it_buys_well_and_a_careless_one_does_not() -> None:
    good, forgetful = rewards(Habits()), rewards(Habits(forgetfulness=1.0))
    careless = rewards(Habits(forgetfulness=1.0, carelessness=0.9))
    won = [sum(reward == 1.0 for reward in found) / len(TASKS) for found in (good, forgetful, careless)]
    assert won[0] > 0.8 > 0.7 > won[1] > 0.2 > won[2]


@pytest.mark.parametrize("seed", range(3))
def test_it_always_knows_a_listed_command_whoever_played_before(seed: int) -> None:
    rng, env = random.Random(seed), WebShopEnv(SHOP)
    for task in TASKS[:10]:
        shopper, step = Shopper(), env.reset(task)
        shopper.start(task.goal, step)
        for _ in range(30):
            decision = shopper.decide()
            assert decision.command in step.commands or decision.command.startswith("search[")
            assert "\n" not in decision.reply.replace("\nAction:", "", 1)
            command = rng.choice([c for c in (*step.commands, "sing", None) if c != BUY])
            told = step if command is None else env.step(command)
            step = (
                EnvStep("No command was found in the reply.", step.commands, step.state, Effect.NO_EFFECT)
                if command is None
                else told
            )
            shopper.observe(command, step)
