"""The reward of a purchase, from 0 to 1 (published rules of WebShop)."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from had.envs.webshop.colours import normalise_colour
from had.envs.webshop.goal import Goal
from had.envs.webshop.matching import is_match
from had.envs.webshop.product import Product

# Limits of the title score, the share of the goal title's nouns that the purchase's title has too.
SIMILAR_TITLE = 0.2
UNLIKE_TITLE = 0.1
TITLE_WITHOUT_NOUNS = 0.2
MIN_SHARED_CATEGORIES = 2


@dataclass(frozen=True)
class Reward:
    """The parts of a reward.

    Attributes:
        type_factor: 1.0, 0.5, 0.1 or 0.0: how far the purchase is the kind of thing that was asked for.
        num_attributes, num_options: matched ones.
        is_affordable: the price is within the limit.
        num_wanted: attributes and options of the goal, and one for the price.
    """

    type_factor: float
    num_attributes: int
    num_options: int
    is_affordable: bool
    num_wanted: int

    @property
    def value(self) -> float:
        """type_factor × (matched attributes + matched options + affordable) / wanted."""
        matched = self.num_attributes + self.num_options + self.is_affordable
        return self.type_factor * (matched / self.num_wanted)


@dataclass(frozen=True)
class Titled:
    """A product and the nouns of its title."""

    product: Product
    nouns: Collection[str]


def judge_purchase(
    bought: Titled, options: Collection[str], price: float, goal: Goal, wanted: Titled
) -> Reward:
    """The reward of buying a product.

    Args:
        bought: the purchase.
        options: the option values selected.
        price: of the purchase, in dollars.
        goal: what was asked for.
        wanted: the product that the goal was made from.
    """
    return Reward(
        type_factor=type_factor(bought, wanted),
        num_attributes=sum(has_attribute(bought.product, attribute) for attribute in goal.attributes),
        num_options=_count_options(options, goal.option_texts),
        is_affordable=price <= goal.price_limit,
        num_wanted=len(goal.attributes) + len(goal.options) + 1,
    )


def type_factor(bought: Titled, wanted: Titled) -> float:
    """How far two products are the same kind of thing."""
    score = _title_score(bought.nouns, wanted.nouns)
    if score == 0.0:
        return 0.0
    if score < UNLIKE_TITLE:
        return 0.1
    is_same_kind = (
        bought.product.query == wanted.product.query
        or len(_categories(bought.product) & _categories(wanted.product)) >= MIN_SHARED_CATEGORIES
        or score > SIMILAR_TITLE
    )
    return 1.0 if is_same_kind else 0.5


def has_attribute(product: Product, attribute: str) -> bool:
    """True when the product has the attribute: in its list, or literally in one of its texts."""
    if any(is_match(own, attribute) for own in product.attributes):
        return True
    texts = (product.title, " ".join(product.bullets), product.description)
    return any(attribute in text.lower() for text in texts)


def _title_score(bought: Collection[str], wanted: Collection[str]) -> float:
    if not wanted:
        return TITLE_WITHOUT_NOUNS
    return len(set(bought) & set(wanted)) / len(wanted)


def _categories(product: Product) -> set[str]:
    return {part.strip() for part in product.category_path.split("›")}


def _count_options(selected: Collection[str], wanted: Collection[str]) -> int:
    """How many wanted texts match one of the selected values."""
    chosen = [normalise_colour(value) for value in selected]
    return sum(any(is_match(own, text) for own in chosen) for text in wanted)
