"""The shop as a text world: pages, commands, what changes and what does not."""

from __future__ import annotations

import pickle
import random
from dataclasses import dataclass, replace

import pytest

from had.envs.base import EnvFailure
from had.envs.webshop.catalogue import MemoryCatalogue
from had.envs.webshop.env import WebShopEnv
from had.envs.webshop.generated import GeneratedShop
from had.envs.webshop.goal import Goal
from had.envs.webshop.nouns import TitleNouns
from had.envs.webshop.shop import Shop
from had.envs.webshop.tasks import WebShopTasks
from had.records import Effect, EnvState, EnvStep, Task

from .shelf import make_goal, make_product

_LAMP = make_product(
    "B00LAMP001",
    title="Oak Lamp",
    description="A lamp of solid wood.",
    bullets=(" Bright. ", "Solid wood."),
    options=(("color", ("red", "blue", "description")), ("shade", ("wide", "red"))),
)
_GOAL = make_goal("B00LAMP001", options=("blue", "wide"))
_TASK = Task("webshop/test/00000", "test", "garden", _GOAL.text, "0")


@dataclass(frozen=True)
class _SmallShop:
    """Twenty-five lamps."""

    goal: Goal = _GOAL
    name: str = "small"

    def open(self) -> Shop:
        others = [make_product(f"B00LAMP{number:03}", title=f"Lamp {number}") for number in range(2, 26)]
        return Shop(MemoryCatalogue([_LAMP, *others]), (self.goal,), TitleNouns(), 0)


@pytest.fixture
def env() -> WebShopEnv:
    return WebShopEnv(_SmallShop())


def _play(env: WebShopEnv, *commands: str) -> EnvStep:
    step = env.reset(_TASK)
    for command in commands:
        step = env.step(command)
    return step


def test_the_search_page(env: WebShopEnv) -> None:
    step = _play(env)
    assert step == EnvStep("WebShop [SEP] Search", ("search[<query>]",), EnvState("the search page"))


def test_a_results_page_lists_ten_products(env: WebShopEnv) -> None:
    step = _play(env, "search[ LAMP  oak ]")
    texts = step.observation.split(" [SEP] ")
    assert texts[:3] == ["Back to Search", "Page 1 (Total results: 25)", "Next >"]
    assert texts[3:6] == ["B00LAMP001", "Oak Lamp", "$25.0"]
    assert len(texts) == 3 + 30
    assert step.commands[:4] == (
        "search[<query>]",
        "click[back to search]",
        "click[next >]",
        "click[b00lamp001]",
    )
    assert step.state == EnvState('results page 1 for "lamp oak"')
    assert step.effect is Effect.CHANGED


def test_turning_pages(env: WebShopEnv) -> None:
    second = _play(env, "search[lamp]", "click[next >]")
    assert "Page 2 (Total results: 25) [SEP] < Prev [SEP] Next > [SEP]" in second.observation
    third = env.step("click[next >]")
    assert third.observation.count("$25.0") == 5
    assert "click[next >]" not in third.commands
    assert env.step("click[next >]").effect is Effect.NO_EFFECT
    assert env.step("click[< prev]").observation == second.observation


def test_a_product_page(env: WebShopEnv) -> None:
    step = _play(env, "search[oak]", "click[b00lamp001]")
    assert step.observation == (
        "Back to Search [SEP] < Prev [SEP] color [SEP] red [SEP] blue [SEP] description [SEP] shade [SEP] "
        "wide [SEP] red [SEP] Oak Lamp [SEP] Price: $25.0 [SEP] Rating: N.A. [SEP] Description [SEP] "
        "Features [SEP] Reviews [SEP] Buy Now"
    )
    assert step.commands == (
        "search[<query>]",
        "click[back to search]",
        "click[< prev]",
        "click[description]",
        "click[features]",
        "click[reviews]",
        "click[buy now]",
        "click[red]",
        "click[blue]",
        "click[wide]",
    )
    assert step.state == EnvState("product b00lamp001", (), ("color", "shade"))


def test_sub_pages_keep_the_selection(env: WebShopEnv) -> None:
    step = _play(env, "search[oak]", "click[b00lamp001]", "click[blue]", "click[features]")
    assert step.observation == "Back to Search [SEP] < Prev [SEP] Bright. [SEP] Solid wood."
    assert step.commands == ("search[<query>]", "click[back to search]", "click[< prev]")
    assert step.state == EnvState("the features of product b00lamp001", ("color: blue",), ("shade",))
    back = env.step("click[< prev]")
    assert back.state == EnvState("product b00lamp001", ("color: blue",), ("shade",))
    # a button of that name comes before the option value
    assert env.step("click[description]").observation.endswith("A lamp of solid wood.")
    env.step("click[< prev]")
    assert env.step("click[reviews]").observation.endswith("No reviews found")


def test_one_value_per_option_and_a_shared_value_belongs_to_the_last_group(env: WebShopEnv) -> None:
    step = _play(env, "search[oak]", "click[b00lamp001]", "click[blue]", "click[red]")
    assert step.state.held == ("color: blue", "shade: red")
    assert env.step("click[wide]").state.held == ("color: blue", "shade: wide")
    assert env.step("click[wide]").effect is Effect.NO_EFFECT


@pytest.mark.parametrize("leave", ["click[< prev]", "click[back to search]", "search[oak]"])
def test_leaving_a_product_clears_the_selection(env: WebShopEnv, leave: str) -> None:
    step = _play(env, "search[oak]", "click[b00lamp001]", "click[blue]", leave)
    assert step.state.held == ()
    env.step("search[oak]")
    assert env.step("click[b00lamp001]").state.held == ()


def test_buying(env: WebShopEnv) -> None:
    step = _play(env, "search[oak]", "click[b00lamp001]", "click[blue]", "click[wide]", "click[Buy Now]")
    assert (step.reward, step.score, step.is_done, step.is_won) == (1.0, 100.0, True, True)
    assert step.commands == ()
    after = env.step("search[oak]")
    assert (after.reward, after.is_done, after.effect) == (1.0, True, Effect.NO_EFFECT)


def test_buying_the_wrong_thing_ends_without_success(env: WebShopEnv) -> None:
    step = _play(env, "search[oak]", "click[b00lamp001]", "click[buy now]")
    assert (step.reward, step.is_done, step.is_won) == (pytest.approx(2 / 4), True, False)
    assert step.score == pytest.approx(50.0)


@pytest.mark.parametrize(
    "command",
    ["", "look", "search", "search[]", "search[  ]", "search[<query>]", "click[]", "click[nothing]",
     "click[search]", "buy[now]", "Search[oak]", "search[oak", "click[b00lamp001]", "x" * 10_000, "click[\n]",
     "クリック[買う]"],
)  # fmt: skip
def test_anything_else_has_no_effect(env: WebShopEnv, command: str) -> None:
    before = _play(env)
    after = env.step(command)
    assert after.effect is Effect.NO_EFFECT
    assert after == replace(before, effect=Effect.NO_EFFECT)


def test_searching_works_on_every_page(env: WebShopEnv) -> None:
    for way in ((), ("search[lamp]", "click[next >]"), ("search[oak]", "click[b00lamp001]")):
        step = _play(env, *way, "search[lamp 7]")
        assert step.state.location == 'results page 1 for "lamp 7"'
    assert env.step("search[lamp 7]").effect is Effect.NO_EFFECT  # page and options stay


def test_a_search_that_finds_nothing(env: WebShopEnv) -> None:
    step = _play(env, "search[sofa]")
    assert step.observation == "Back to Search [SEP] Page 1 (Total results: 0)"
    assert step.effect is Effect.CHANGED


def test_a_search_of_thousands_of_characters_has_a_short_name(env: WebShopEnv) -> None:
    step = _play(env, f"search[{'lamp ' * 3000}]")
    assert len(step.state.location or "") < 150


def test_tasks_of_another_shop_are_refused(env: WebShopEnv) -> None:
    for task in (Task("x", "test", "", "another goal", "0"), Task("x", "test", "", _GOAL.text, "7")):
        with pytest.raises(EnvFailure, match="make the tasks with WebShopTasks"):
            env.reset(task)
    with pytest.raises(EnvFailure, match="before reset"):
        WebShopEnv(_SmallShop()).step("search[oak]")


def test_an_environment_can_be_sent_to_a_worker_and_closed_twice() -> None:
    env = pickle.loads(pickle.dumps(WebShopEnv(GeneratedShop())))
    env.reset(WebShopTasks(GeneratedShop(), num_test=5).tasks("test")[0])
    env.close()
    env.close()


def test_random_episodes_never_raise_and_follow_the_list() -> None:
    source = GeneratedShop()
    env, draw = WebShopEnv(source), random.Random(0)
    for task in WebShopTasks(source, num_test=200).tasks("test"):
        step = env.reset(task)
        for _ in range(15):
            command = draw.choice(step.commands)
            if command == "search[<query>]":
                command = f"search[{' '.join(draw.choices(task.goal.split(), k=3))}]"
            step = env.step(command)
            assert 0.0 <= step.reward <= 1.0
            assert step.is_won == (step.reward == 1.0)
            if step.is_done:
                break
