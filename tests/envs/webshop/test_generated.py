"""The generated catalogue."""

from __future__ import annotations

import hashlib

from had.envs.webshop.colours import normalise_colour
from had.envs.webshop.families import FAMILIES
from had.envs.webshop.generated import make_record
from had.envs.webshop.matching import is_match
from had.envs.webshop.shop import Shop


def test_the_catalogue_is_the_same_on_every_machine(mini: Shop) -> None:
    text = "\n".join(f"{goal.asin} {goal.text}" for goal in mini.goals)
    assert len(mini.goals) == 1329
    assert hashlib.sha256(text.encode()).hexdigest()[:16] == "1a3f779087312d2e"


def test_seeds_make_other_products() -> None:
    assert make_record(0, 3) == make_record(0, 3)
    assert make_record(0, 3) != make_record(1, 3)


def test_ids_are_distinct() -> None:
    assert len({make_record(0, index)[0]["asin"] for index in range(3000)}) == 3000


def test_every_option_has_to_be_selected() -> None:
    """No value of a group passes for another one."""
    for family in FAMILIES:
        for values in family.options.values():
            for first in values:
                wanted = normalise_colour(first)
                passing = [value for value in values if is_match(normalise_colour(value), wanted)]
                assert passing == [first]


def test_goals_can_be_reached_and_options_count(mini: Shop) -> None:
    assert all(mini.judge(goal.asin, goal.options, goal).value == 1.0 for goal in mini.goals)
    without = [mini.judge(goal.asin, (), goal).value for goal in mini.goals]
    assert 0.5 < sum(without) / len(without) < 0.7
