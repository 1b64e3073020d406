"""What a shopper is asked to buy: synthetic goals from the option combinations, human goals from their file."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from had.envs.webshop.product import Product

# A limit above the price: the larger of two draws from the first four of these that exceed it.
PRICE_LIMITS = tuple(10.0 * tens for tens in range(1, 100))
NUM_LIMITS = 4
NO_LIMIT = 1_000_000.0  # for products too dear for two of the limits; the text then names no limit
SHUFFLE_SEED = 233  # the original's: decides which goals are the test goals


@dataclass(frozen=True, slots=True)
class Goal:
    """One thing to buy.

    Attributes:
        asin: the product that the goal was made from.
        text: the instruction that the shopper reads.
        attributes: properties that the purchase must have.
        options: option values that must be selected.
        price_limit: highest price in dollars.
    """

    asin: str
    text: str
    attributes: tuple[str, ...]
    options: tuple[str, ...]
    price_limit: float


def synthetic_goals(product: Product, annotation: Mapping[str, Any], price: float, seed: int) -> list[Goal]:
    """A goal for every combination of the product's options; none without an instruction in the annotation."""
    instruction = annotation.get("instruction")
    if instruction is None:
        return []
    limit, limit_text = _draw_limit(price, random.Random(f"{seed}/{product.asin}/limit"))
    groups = sorted(product.options)
    goals = []
    for values in itertools.product(*(values for _, values in groups)):
        chosen = [f"{name}: {value}" for (name, _), value in zip(groups, values, strict=True)]
        option_text = f" with {', and '.join(chosen)}" if chosen else ""
        goals.append(
            Goal(
                product.asin,
                f"{instruction}{option_text}{limit_text}",
                tuple(annotation["instruction_attributes"]),
                values,
                limit,
            )
        )
    return goals


def human_goals(
    product: Product, annotations: Sequence[Mapping[str, Any]], price: float, seed: int
) -> list[Goal]:
    """A goal for every instruction that people wrote for the product; those without attributes are left out."""
    goals = []
    for number, annotation in enumerate(annotations):
        if annotation["instruction_attributes"]:
            generator = random.Random(f"{seed}/{product.asin}/limit/{number}")
            limit, limit_text = _draw_limit(price, generator)
            goals.append(
                Goal(
                    product.asin,
                    f"{annotation['instruction'].strip('.')}{limit_text}",
                    tuple(annotation["instruction_attributes"]),
                    tuple(annotation["instruction_options"]),
                    limit,
                )
            )
    return goals


def in_original_order(goals: Iterator[Goal] | Sequence[Goal]) -> tuple[Goal, ...]:
    """Goals in catalogue order, shuffled as the original does before it cuts its splits."""
    shuffled = list(goals)
    random.Random(SHUFFLE_SEED).shuffle(shuffled)
    return tuple(shuffled)


def _draw_limit(price: float, generator: random.Random) -> tuple[float, str]:
    above = [limit for limit in PRICE_LIMITS if limit > price][:NUM_LIMITS]
    if len(above) < 2:
        return NO_LIMIT, ""
    limit = max(generator.sample(above, 2))
    return limit, f", and price lower than {limit:.2f} dollars"
