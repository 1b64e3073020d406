"""What an agent reads in the shop: its own instructions, two past turns, the harness text."""

from __future__ import annotations

from pathlib import Path

import pytest
from hydra import compose, initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from hydra.utils import instantiate

from had.prompts.views import PromptFormat, Shown, View

CONFIGS = Path(__file__).resolve().parents[3] / "configs"
PAST = [Shown(f"page {i}", (), f"report {i}", f"Thought: t{i}\nAction: a{i}") for i in range(4)]
NOW = Shown("page 4", ("search[<query>]", "click[next >]"), "report 4")


def _prompt(name: str) -> PromptFormat:
    GlobalHydra.instance().clear()
    with initialize_config_dir(str(CONFIGS), version_base="1.3"):
        return instantiate(compose("train", [f"prompt={name}"]).prompt, _convert_="all")


@pytest.mark.parametrize(("name", "num_past"), [("webshop", 2), ("webshop_window", 1)])
def test_the_last_turns_stay(name: str, num_past: int) -> None:
    messages = _prompt(name).messages("buy a lamp", PAST, NOW, View.WITH_HARNESS)
    users = [message["content"] for message in messages if message["role"] == "user"]
    assert users[:-1] == [f"page {4 - back}" for back in range(num_past, 0, -1)]
    page, report, *_ = users[-1].split("\n")
    assert (page, report) == ("page 4", "report 4")


def test_the_instructions_are_those_of_a_shop() -> None:
    system = _prompt("webshop").messages("buy a lamp", [], NOW, View.WITH_HARNESS)[0]["content"]
    assert "search[<query>]" in system and "Nothing happens" not in system
    assert system.splitlines()[1:3] == ["Thought: <brief reasoning>", "Action: <one command>"]
    assert system.endswith("\n\nYour task is to: buy a lamp")


def test_only_the_harness_text_differs_between_the_views() -> None:
    with_text, without = (
        _prompt("webshop").messages("buy a lamp", PAST, NOW, view)
        for view in (View.WITH_HARNESS, View.WITHOUT_HARNESS)
    )
    assert with_text[:-1] == without[:-1]
    assert with_text[-1]["content"].replace("report 4\n", "") == without[-1]["content"]
