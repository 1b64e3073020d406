"""What a shopper is asked to buy: synthetic goals from option combinations, human goals from their file."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from had.envs.webshop.colours import COLOUR_WORDS, normalise_colour
from had.envs.webshop.product import Product

# A limit above the price: the larger of two draws from the first four of these that exceed it.
PRICE_LIMITS = tuple(10.0 * tens for tens in range(1, 100))
NUM_LIMITS = 4
NO_LIMIT = 1_000_000.0  # for products too dear for two of the limits; the text then names no limit
SHUFFLE_SEED = 233  # the original's: decides which goals are the test goals

# `values`: a selected value is compared with the wanted value, as the rule is published and as the original
# does with human goals. `pairs`: with the text of a (name, value) pair whose colours are not normalised, as
# the original does with synthetic goals by mistake: 458 of the 6,910 then cannot be bought for a reward of 1.
OPTION_RULES = ("values", "pairs")


@dataclass(frozen=True, slots=True)
class Goal:
    """One thing to buy.

    Attributes:
        asin: the product that the goal was made from.
        text: the instruction that the shopper reads.
        attributes: properties that the purchase must have.
        options: option values that must be selected.
        option_texts: what the selected values are compared with, one per option.
        price_limit: highest price in dollars.
    """

    asin: str
    text: str
    attributes: tuple[str, ...]
    options: tuple[str, ...]
    option_texts: tuple[str, ...]
    price_limit: float


def synthetic_goals(
    product: Product, annotation: Mapping[str, Any], price: float, seed: int, option_rule: str = "values"
) -> list[Goal]:
    """A goal for every combination of the product's options; none where the annotation has no instruction."""
    instruction = annotation.get("instruction")
    if instruction is None:
        return []
    limit, limit_text = _draw_limit(price, f"{seed}/{product.asin}/limit")
    names = [name for name, _ in sorted(product.options)]
    goals = []
    for values in itertools.product(*(values for _, values in sorted(product.options))):
        pairs = list(zip(names, values, strict=True))
        option_text = ", and ".join(f"{name}: {value}" for name, value in pairs)
        goals.append(
            Goal(
                asin=product.asin,
                text=f"{instruction}{' with ' if pairs else ''}{option_text}{limit_text}",
                attributes=tuple(annotation["instruction_attributes"]),
                options=values,
                option_texts=tuple(_wanted_text(pair, option_rule) for pair in pairs),
                price_limit=limit,
            )
        )
    return goals


def human_goals(
    product: Product, annotations: Sequence[Mapping[str, Any]], price: float, seed: int
) -> list[Goal]:
    """A goal for every instruction that people wrote for a product; those without attributes are dropped."""
    goals = []
    for number, annotation in enumerate(annotations):
        if annotation["instruction_attributes"]:
            limit, limit_text = _draw_limit(price, f"{seed}/{product.asin}/limit/{number}")
            options = tuple(annotation["instruction_options"])
            goals.append(
                Goal(
                    asin=product.asin,
                    text=f"{annotation['instruction'].strip('.')}{limit_text}",
                    attributes=tuple(annotation["instruction_attributes"]),
                    options=options,
                    option_texts=tuple(normalise_colour(value) for value in options),
                    price_limit=limit,
                )
            )
    return goals


def in_original_order(goals: Iterable[Goal]) -> tuple[Goal, ...]:
    """Goals in catalogue order, shuffled as the original does before it cuts its splits."""
    shuffled = list(goals)
    random.Random(SHUFFLE_SEED).shuffle(shuffled)
    return tuple(shuffled)


def _wanted_text(pair: tuple[str, str], option_rule: str) -> str:
    if option_rule == "values":
        return normalise_colour(pair[1])
    return next((word for word in COLOUR_WORDS if word in pair), str(pair))


def _draw_limit(price: float, seed: str) -> tuple[float, str]:
    above = [limit for limit in PRICE_LIMITS if limit > price][:NUM_LIMITS]
    if len(above) < 2:
        return NO_LIMIT, ""
    limit = max(random.Random(seed).sample(above, 2))
    return limit, f", and price lower than {limit:.2f} dollars"
