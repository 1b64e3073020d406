"""Splits and grammar."""

from __future__ import annotations

import pytest

from had.envs.webshop.generated import GeneratedShop
from had.envs.webshop.grammar import WebShopGrammar
from had.envs.webshop.tasks import WebShopTasks


def test_the_splits_are_cut_in_the_original_order() -> None:
    source = GeneratedShop()
    tasks = WebShopTasks(source, num_test=200, num_validation=100)
    test, validation, train = (tasks.tasks(split) for split in ("test", "validation", "train"))
    goals = source.open().goals
    assert [task.goal for task in (*test, *validation, *train)] == [goal.text for goal in goals]
    assert (len(test), len(validation)) == (200, 100)
    assert test[7].id == "webshop_mini/test/00007"
    assert {task.split for task in validation} == {"validation"}
    assert {task.type for task in train} == {"fashion", "beauty", "grocery", "garden", "electronics"}


def test_what_cannot_be_had_is_explained() -> None:
    tasks = WebShopTasks(GeneratedShop(), num_test=2000)
    with pytest.raises(ValueError, match="set num_test or num_validation lower"):
        tasks.tasks("test")
    with pytest.raises(ValueError, match="known: train, validation, test"):
        tasks.tasks("dev")
    with pytest.raises(ValueError, match="of 0 or more"):
        WebShopTasks(GeneratedShop(), num_test=-1)
    with pytest.raises(ValueError, match="num_products >= 1"):
        GeneratedShop(num_products=0)


@pytest.mark.parametrize(
    ("command", "is_accepted", "is_idle"),
    [
        ("search[red shoes]", True, False),
        ("click[buy now]", True, False),
        ("click[Features]", True, True),
        ("click[description]", True, True),
        ("search[<query>]", False, False),
        ("search[]", False, False),
        ("search red shoes", False, False),
        ("buy[now]", False, False),
        ("", False, False),
    ],
)
def test_grammar(command: str, is_accepted: bool, is_idle: bool) -> None:
    grammar = WebShopGrammar()
    assert grammar.accepts(command) is is_accepted
    assert grammar.is_idle(command) is is_idle
    assert grammar.required_object(command) is None


def test_a_command_is_listed_when_it_stands_for_one_of_the_list() -> None:
    grammar, commands = WebShopGrammar(), ("search[<query>]", "click[buy now]")
    assert grammar.is_listed("search[any words]", commands)
    assert grammar.is_listed("click[Buy Now]", commands)
    assert not grammar.is_listed("click[red]", commands)
    assert not grammar.is_listed("search[<query>]", commands)
    assert not grammar.is_listed("search[any words]", ("click[buy now]",))
