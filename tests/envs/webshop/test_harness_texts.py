"""What the harness says in the shop: the parts of configs/harness/webshop.yaml over real episodes."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from had.envs.webshop.env import WebShopEnv
from had.envs.webshop.generated import GeneratedShop
from had.envs.webshop.grammar import WebShopGrammar
from had.envs.webshop.tasks import WebShopTasks
from had.harness.compose import Harness
from had.harness.tracker import Tracker

_CONFIG = Path(__file__).resolve().parents[3] / "configs" / "harness" / "webshop.yaml"


@pytest.fixture(scope="module")
def harness() -> Harness:
    plain = yaml.safe_load(_CONFIG.read_text(encoding="utf-8"))
    return Harness.from_yaml(yaml.safe_dump({"parts": plain["parts"]}, sort_keys=False))


def _text_after(harness: Harness, *commands: str, seed: int = 0) -> str:
    """The harness text after some commands on the first test task."""
    source = GeneratedShop()
    env, tracker = WebShopEnv(source), Tracker(max_turns=15)
    step = env.reset(WebShopTasks(source, num_test=1).tasks("test")[0])
    tracker.start(step)
    for command in commands:
        step = env.step(command)
        tracker.advance(command, step)
    return harness.text(tracker.facts(), seed)


def _first(query: str) -> str:
    """The id, as in commands, of the first product for a query."""
    return GeneratedShop().open().catalogue.search(query, 1)[0].lower()


def test_thresholds_are_those_of_the_paper(harness: Harness) -> None:
    parts = harness.parts
    assert parts["stall"].window == 4  # type: ignore[attr-defined]
    assert parts["budget"].threshold == 5  # type: ignore[attr-defined]
    assert parts["failure"].min_repeats == 1  # type: ignore[attr-defined]


def test_the_search_page(harness: Harness) -> None:
    assert _text_after(harness, seed=1) == (
        "This is the search page. Selected options: nothing. Groups not yet selected: none. Visited so far: "
        "the search page. This page has been open since turn 1, 0 commands so far. This is turn 1 of at most "
        "15."
    )


def test_a_product_page_names_selected_and_open_options(harness: Harness) -> None:
    query = "running shoes"
    name = _first(query)
    product = GeneratedShop().open().catalogue.product(name.upper())
    color = dict(product.options)["color"][0]
    text = _text_after(harness, f"search[{query}]", f"click[{name}]", f"click[{color}]", seed=1)
    assert text.startswith(
        f"You are on product {name}. Selected options: color: {color}. Option groups without a selection: "
        f'size. Pages seen: the search page, results page 1 for "{query}", product {name}. '
    )


def test_a_command_without_effect_is_reported_at_once(harness: Harness) -> None:
    assert "click[nothing] (once)" in _text_after(harness, "click[nothing]")


def test_a_stall_is_reported_after_four_turns(harness: Harness) -> None:
    loop = ["search[shoes]", *["click[back to search]", "search[shoes]"] * 2]
    stalled = ("Nothing new for 4", "No new state was reached for 4", "The last 4 turns brought nothing")
    assert any(said in _text_after(harness, *loop) for said in stalled)
    assert "4" not in _text_after(harness, *loop[:-1])


def test_the_urge_comes_with_the_last_turns(harness: Harness) -> None:
    pages = [word for number in range(6) for word in (f"search[{number} shoes]", "click[back to search]")]
    assert "4 turns" in _text_after(harness, *pages[:11])
    assert "5 turns" not in _text_after(harness, *pages[:10])


@pytest.mark.parametrize("command", ["click[buy now]", "click[red]", "search[lamp]", "dance"])
def test_no_command_needs_something_held(command: str) -> None:
    assert WebShopGrammar().required_object(command) is None
