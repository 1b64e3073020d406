"""The reward: twenty purchases worked out by hand, and its parts."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from had.envs.webshop.colours import normalise_colour
from had.envs.webshop.goal import Goal
from had.envs.webshop.matching import is_match
from had.envs.webshop.nouns import TitleNouns, guess_nouns
from had.envs.webshop.product import Product
from had.envs.webshop.reward import Titled, judge_purchase

from .shelf import make_goal, make_product

_WANTED = make_product(
    title="Oak Lamp Shade Desk Light Bulb Stand Cable Switch Base",
    attributes=("solid wood", "easy assembly"),
    options=(("color", ("red", "blue")), ("size", ("small", "large"))),
)
# ten nouns, so that a shared one is a tenth of the title score
_TEN = ("oak", "lamp", "shade", "desk", "light", "bulb", "stand", "cable", "switch", "base")
_OTHER_KIND = {"query": "tables", "category_path": "Home › Furniture › Tables"}


@dataclass(frozen=True)
class Purchase:
    """What is bought, for which goal, and the reward worked out by hand."""

    name: str
    expected: float
    bought: Product = _WANTED
    nouns: tuple[str, ...] = _TEN
    wanted_nouns: tuple[str, ...] = _TEN
    options: tuple[str, ...] = ()
    price: float = 25.0
    goal: Goal = field(default_factory=make_goal)


_TWO = make_goal(attributes=("solid wood", "easy assembly"), options=("red", "small"))  # 2 + 2 + 1 wanted
PURCHASES = (
    Purchase("everything", 5 / 5, options=("red", "small"), goal=_TWO),
    Purchase("one option of two", 4 / 5, options=("red", "large"), goal=_TWO),
    Purchase("no option", 3 / 5, goal=_TWO),
    Purchase("too dear", 4 / 5, options=("red", "small"), price=30.01, goal=_TWO),
    Purchase("exactly the limit", 5 / 5, options=("red", "small"), price=30.0, goal=_TWO),
    Purchase("the options in another order", 5 / 5, options=("small", "red"), goal=_TWO),
    Purchase("an option that nobody asked for", 2 / 2, options=("large",)),
    Purchase(
        "colours compared by their first word",
        3 / 3,
        options=("matte red (new)",),
        goal=make_goal(options=("wine red 12",)),
    ),
    Purchase(
        "fuzzy option: a subset of the words",
        3 / 3,
        options=("powder snow",),
        goal=make_goal(options=("cool powder snow",)),
    ),
    Purchase("fuzzy option: too different", 2 / 3, options=("king",), goal=make_goal(options=("queen",))),
    Purchase(  # a weakness of the published rule
        "fuzzy option: 87.5 of 100, since most words are shared",
        3 / 3,
        options=("pack of 6",),
        goal=make_goal(options=("pack of 12",)),
    ),
    Purchase("fuzzy attribute", 2 / 2, bought=make_product(attributes=("solid woods",))),
    Purchase("attribute in the title", 2 / 2, bought=make_product(title="Solid Wood Lamp")),
    Purchase("attribute in the bullets", 2 / 2, bought=make_product(bullets=("Made of", "Solid wood"))),
    Purchase("attribute in the description", 2 / 2, bought=make_product(description="Of SOLID WOOD.")),
    Purchase("no attribute", 1 / 2, bought=make_product()),
    Purchase(
        "another query, but two shared categories",
        2 / 2,
        bought=make_product(attributes=("solid wood",), query="tables"),
        nouns=_TEN[:2],
    ),
    Purchase(
        "another kind of thing with a title like it: 3 of 10 nouns",
        2 / 2,
        bought=make_product(attributes=("solid wood",), **_OTHER_KIND),
        nouns=_TEN[:3],
    ),
    Purchase(
        "another kind of thing, 2 of 10 nouns",
        0.5 * 2 / 2,
        bought=make_product(attributes=("solid wood",), **_OTHER_KIND),
        nouns=_TEN[:2],
    ),
    Purchase(
        "same query, but 1 of 11 nouns",
        0.1 * 2 / 2,
        bought=make_product(attributes=("solid wood",)),
        nouns=_TEN[:1],
        wanted_nouns=(*_TEN, "dimmer"),
    ),
    Purchase("same query and attribute, but no noun", 0.0, nouns=("sofa",)),
    Purchase("a goal without nouns, same query", 2 / 2, nouns=("sofa",), wanted_nouns=()),
    Purchase(
        "a goal without nouns, another kind of thing",
        0.5 * 2 / 2,
        bought=make_product(attributes=("solid wood",), **_OTHER_KIND),
        nouns=("sofa",),
        wanted_nouns=(),
    ),
    Purchase(
        "the half factor on a partial match",
        0.5 * 2 / 3,
        bought=make_product(attributes=("solid wood",), **_OTHER_KIND),
        nouns=_TEN[:2],
        goal=make_goal(options=("red",)),
    ),
)


@pytest.mark.parametrize("purchase", PURCHASES, ids=lambda purchase: purchase.name)
def test_rewards_worked_out_by_hand(purchase: Purchase) -> None:
    bought = Titled(purchase.bought, purchase.nouns)
    wanted = Titled(_WANTED, purchase.wanted_nouns)
    reward = judge_purchase(bought, purchase.options, purchase.price, purchase.goal, wanted)
    assert reward.value == pytest.approx(purchase.expected, abs=1e-12)


def test_a_full_match_is_exactly_one() -> None:
    for num_attributes in range(1, 12):
        attributes = tuple(f"property {number}" for number in range(num_attributes))
        product = Titled(make_product(attributes=attributes), _TEN)
        goal = make_goal(attributes=attributes)
        assert judge_purchase(product, (), 25.0, goal, product).value == 1.0


def test_colours() -> None:
    assert normalise_colour("dark red") == "dark"  # the vocabulary is in alphabetical order
    assert normalise_colour("123alabaster") == "alabaster"
    assert normalise_colour("violet lavender") == "lavender"
    assert normalise_colour("webshop") == "webshop"


def test_matching() -> None:
    assert is_match("Tea Tree!", "tea-tree")
    assert is_match("size 10", "10")
    assert not is_match("", "")
    assert not is_match("small", "large")
    assert is_match("café", "caf")  # the upper half of Latin-1 is dropped


def test_nouns_are_guessed_where_no_file_knows_them() -> None:
    title = "SheIn Women's 2 Pack Long-Sleeve Dress for the Office with 100% Cotton"
    assert guess_nouns(title) == {"shein", "women", "pack", "long", "sleeve", "dress", "office", "cotton"}
    nouns = TitleNouns({"B000000001": frozenset({"lamp"})})
    assert nouns.of(make_product(title="Oak Lamp")) == {"lamp"}
    assert nouns.of(make_product(asin="B000000002", title="Oak Lamp")) == {"oak", "lamp"}
