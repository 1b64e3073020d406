"""Goals from option combinations and from people's instructions."""

from __future__ import annotations

import random

from had.envs.webshop.goal import NO_LIMIT, human_goals, in_original_order, synthetic_goals

from .shelf import make_goal, make_product

_OPTIONS = (("size", ("small", "large")), ("color", ("red", "dark blue", "tan")))
_ANNOTATION = {"instruction": "Find me lamps", "instruction_attributes": ["solid wood", "dimmable"]}


def test_a_goal_for_every_combination_in_the_order_of_option_names() -> None:
    goals = synthetic_goals(make_product(options=_OPTIONS), _ANNOTATION, price=25.0, seed=0)
    assert [goal.options for goal in goals] == [
        (color, size) for color in ("red", "dark blue", "tan") for size in ("small", "large")
    ]
    assert goals[2].text.startswith("Find me lamps with color: dark blue, and size: small, and price lower ")
    assert goals[2].text.endswith(f" {goals[2].price_limit:.2f} dollars")
    assert goals[2].attributes == ("solid wood", "dimmable")
    assert goals[2].option_texts == ("blue", "small")  # the colour is normalised


def test_the_rule_of_pairs_compares_with_name_and_value() -> None:
    goals = synthetic_goals(make_product(options=_OPTIONS), _ANNOTATION, 25.0, 0, "pairs")
    assert goals[0].option_texts == ("red", "('size', 'small')")
    assert goals[2].option_texts == ("('color', 'dark blue')", "('size', 'small')")


def test_the_price_limit_is_the_larger_of_two_of_the_next_four_tens() -> None:
    product = make_product()
    limits = {synthetic_goals(product, _ANNOTATION, 25.0, seed)[0].price_limit for seed in range(60)}
    assert limits == {40.0, 50.0, 60.0}
    exact = {synthetic_goals(product, _ANNOTATION, 30.0, seed)[0].price_limit for seed in range(60)}
    assert exact == {50.0, 60.0, 70.0}


def test_a_product_too_dear_for_a_limit_has_none() -> None:
    (goal,) = synthetic_goals(make_product(), _ANNOTATION, price=980.0, seed=0)
    assert goal.price_limit == NO_LIMIT
    assert goal.text == "Find me lamps"
    (dear,) = synthetic_goals(make_product(), _ANNOTATION, price=979.0, seed=0)
    assert dear.price_limit == 990.0


def test_no_instruction_no_goal() -> None:
    assert synthetic_goals(make_product(), {"attributes": []}, 25.0, 0) == []
    assert synthetic_goals(make_product(options=(("size", ()),)), _ANNOTATION, 25.0, 0) == []


def _human(text: str, attributes: list[str], options: list[str]) -> dict[str, object]:
    return {"instruction": text, "instruction_attributes": attributes, "instruction_options": options}


def test_human_goals() -> None:
    annotations = [
        _human("i want a lamp.", ["dimmable"], ["Red"]),
        _human("any lamp", [], []),
    ]
    (goal,) = human_goals(make_product(), annotations, price=25.0, seed=0)
    assert goal.text.startswith("i want a lamp, and price lower than ")
    assert (goal.attributes, goal.options) == (("dimmable",), ("Red",))


def test_the_original_order_is_a_shuffle_with_its_seed() -> None:
    goals = [make_goal(asin=str(number)) for number in range(50)]
    numbers = list(range(50))
    random.Random(233).shuffle(numbers)
    assert [int(goal.asin) for goal in in_original_order(iter(goals))] == numbers
