"""The shop from WebShop's own files: the published counts and rewards."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from had.envs.webshop.env import WebShopEnv
from had.envs.webshop.goal import Goal
from had.envs.webshop.original import OriginalShop
from had.envs.webshop.shop import Shop
from had.envs.webshop.tasks import WebShopTasks
from had.records import Task

from .original_files import write_files


@pytest.fixture(scope="module")
def source(webshop_data: Path) -> OriginalShop:
    return OriginalShop(str(webshop_data))


@pytest.fixture(scope="module")
def tasks(source: OriginalShop) -> Sequence[Task]:
    splits = WebShopTasks(source)
    assert [len(splits.tasks(split)) for split in ("test", "validation", "train")] == [500, 0, 6410]
    return (*splits.tasks("test"), *splits.tasks("train"))


def _rewards(shop: Shop, has_options: bool) -> list[float]:
    return [shop.judge(goal.asin, goal.options if has_options else (), goal).value for goal in shop.goals]


def test_goals_and_oracle_purchases(source: OriginalShop, tasks: Sequence[Task]) -> None:
    shop = source.open()
    assert len(shop.goals) == len({task.id for task in tasks}) == 6910
    oracle = _rewards(shop, has_options=True)
    assert min(oracle) == 1.0
    without = _rewards(shop, has_options=False)
    assert sum(without) / len(without) == pytest.approx(0.70, abs=0.005)


def test_the_rule_of_pairs_gives_the_rewards_of_the_original(webshop_data: Path) -> None:
    shop = OriginalShop(str(webshop_data), option_rule="pairs").open()
    oracle = _rewards(shop, has_options=True)
    assert sum(reward < 1.0 for reward in oracle) == 458
    assert min(oracle) == pytest.approx(2 / 3)


def _shop_for(env: WebShopEnv, task: Task, goal: Goal) -> float:
    """Search the product's title, turn pages until it is listed, select the options, buy."""
    env.reset(task)
    title = env.session.shop.catalogue.product(goal.asin).title
    step = env.step(f"search[{title}]")
    while f"click[{goal.asin.lower()}]" not in step.commands:
        step = env.step("click[next >]")
        assert step.effect == "changed", "the product is not among the results"
    env.step(f"click[{goal.asin.lower()}]")
    for value in goal.options:
        env.step(f"click[{value}]")
    return env.step("click[buy now]").reward


def test_an_oracle_shopper_on_the_pages(source: OriginalShop, tasks: Sequence[Task]) -> None:
    env, goals = WebShopEnv(source), source.open().goals
    assert {_shop_for(env, tasks[number], goals[number]) for number in range(0, 6910, 20)} == {1.0}


def test_random_episodes_never_raise(source: OriginalShop, tasks: Sequence[Task]) -> None:
    env, draw = WebShopEnv(source), random.Random(0)
    for task in tasks[:200]:
        step = env.reset(task)
        for _ in range(15):
            command = draw.choice(step.commands)
            if command == "search[<query>]":
                command = f"search[{' '.join(draw.choices(task.goal.split(), k=4))}]"
            step = env.step(command)
            assert 0.0 <= step.reward <= 1.0
            if step.is_done:
                break


def test_memory(webshop_data: Path) -> None:
    code = (
        "import sys; from had.envs.webshop.original import OriginalShop; from peak_memory import peak_kib; "
        "OriginalShop(sys.argv[1]).open(); print(peak_kib())"
    )
    command = [sys.executable, "-c", code, str(webshop_data)]
    tests = Path(__file__).resolve().parents[2]
    output = subprocess.run(command, check=True, capture_output=True, text=True, cwd=tests).stdout
    assert int(output) < 300 * 1024  # KiB


def test_human_goals_of_the_small_version(webshop_data: Path) -> None:
    shop = OriginalShop(str(webshop_data), goals="human").open()
    assert len(shop.goals) == 13
    assert all(", and price lower than " in goal.text for goal in shop.goals)


def test_files_in_the_original_format_without_a_nouns_file(tmp_path: Path) -> None:
    write_files(tmp_path, 60, size="1000")
    shop = OriginalShop(str(tmp_path)).open()
    assert {reward for reward in _rewards(shop, has_options=True)} == {1.0}


def test_missing_files_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(FileNotFoundError, match=r"items_ins_v2_1000.json is not a file.*env=webshop_mini"):
        OriginalShop(str(tmp_path)).open()
    monkeypatch.delenv("WEBSHOP_DATA", raising=False)
    with pytest.raises(FileNotFoundError, match=r"nor \$WEBSHOP_DATA is set.*setup.sh -d all"):
        OriginalShop(size="all", goals="human").open()


def test_damaged_files_are_named(tmp_path: Path) -> None:
    write_files(tmp_path, 5, size="1000")
    path = tmp_path / "items_shuffle_1000.json"
    path.write_text(path.read_text(encoding="utf-8")[:-20], encoding="utf-8")
    with pytest.raises(ValueError, match=r"items_shuffle_1000.json: expected JSON"):
        OriginalShop(str(tmp_path)).open()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"size": "2000"}, "expected size in"),
        ({"goals": "all"}, "expected goals in"),
        ({"option_rule": "both"}, "expected option_rule in"),
        ({"size": "all"}, "millions of synthetic goals"),
    ],
)
def test_settings_are_checked(wrong: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        OriginalShop(**wrong)
