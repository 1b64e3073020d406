"""`GeneratedShop`: a catalogue made from word lists, for use without any data; the same on every machine."""

from __future__ import annotations

import random
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from had.envs.webshop.catalogue import MemoryCatalogue
from had.envs.webshop.families import FAMILIES, Family
from had.envs.webshop.goal import in_original_order, synthetic_goals
from had.envs.webshop.nouns import TitleNouns
from had.envs.webshop.product import read_product
from had.envs.webshop.shop import Shop

_BRANDS = """
    Alderbee Brontal Calvany Dorvik Elmspun Farrowe Glintar Hollisk Ivendo Jorvale Kestrin Lumaro Morwell
    Nandor Ostrella Pinwick Quorlin Rivanto Solbeck Tarnley Umbrel Verdanto Wexmoor Yarvik Zephlin
"""
BRANDS = tuple(_BRANDS.split())
_LINES = ("Basic", "Classic", "Prime", "Urban", "Nova", "Studio", "Active", "Essential", "Heritage")
_ASIN_CHARACTERS = "0123456789ABCDEFGHJKLMNPQRSTUVWXYZ"
_ASIN_STRIDE = 548_129  # shares no factor with 34 ** 4, so that the first 1.3 million products differ
_NUM_PROPERTIES = (2, 4)  # of a product, at least and at most
_MAX_VALUES = 4  # of an option group
_SHARE_WITH_GOALS = 0.7  # of the products; the others are only in the way
_SHARE_WITH_RANGE = 0.1  # of the products, sold at a range of prices


@dataclass(frozen=True)
class GeneratedShop:
    """A `ShopSource` that needs no files.

    Attributes:
        num_products: products, in equal parts of all families.
        seed: decides everything.

    Raises:
        ValueError: no products.
    """

    num_products: int = 300
    seed: int = 0

    def __post_init__(self) -> None:
        if self.num_products < 1:
            raise ValueError(f"webshop: expected num_products >= 1, got {self.num_products}")

    @property
    def name(self) -> str:
        return "webshop_mini"

    def open(self) -> Shop:
        return _open(self)


@lru_cache(maxsize=4)
def _open(source: GeneratedShop) -> Shop:
    records = [make_record(source.seed, index) for index in range(source.num_products)]
    annotations = {raw["asin"]: annotation for raw, annotation in records}
    catalogue = MemoryCatalogue(read_product(raw, annotation) for raw, annotation in records)
    goals = []
    for product in map(catalogue.product, catalogue.asins):
        price = product.sample_price(source.seed)
        goals += synthetic_goals(product, annotations[product.asin], price, source.seed)
    return Shop(catalogue, in_original_order(goals), TitleNouns(), source.seed)


def make_record(seed: int, index: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """A product as in the original's product file, and its entry in the attribute file."""
    draw = random.Random(f"{seed}/product/{index}")
    family = FAMILIES[index % len(FAMILIES)]
    brand, line = draw.choice(BRANDS), draw.choice(_LINES)
    properties = draw.sample(family.properties, draw.randint(*_NUM_PROPERTIES))
    others = [name for name in family.properties if name not in properties]
    raw = {
        "asin": _asin(seed, index),
        "name": f"{brand} {line} {family.name}, {properties[0].title()}",
        "full_description": (
            f"The {line.lower()} {family.name.lower()} by {brand}: {properties[0]} and {properties[1]}."
        ),
        "small_description": [f"{name.capitalize()}." for name in properties],
        "customization_options": _options(family, draw),
        "category": family.category,
        "query": family.query,
        "product_category": f"{family.category.title()} › {family.path}",
        "pricing": _pricing(family, draw),
    }
    annotation: dict[str, Any] = {"attributes": properties}
    if others and draw.random() < _SHARE_WITH_GOALS:
        wanted = draw.sample(properties, draw.randint(1, 2))
        annotation["instruction"] = f"Find me {', '.join(wanted)} {family.query}"
        annotation["instruction_attributes"] = wanted
    return raw, annotation


def _asin(seed: int, index: int) -> str:
    """An id of ten characters that looks random; distinct for distinct indices."""
    number = index * _ASIN_STRIDE
    tail = ""
    for _ in range(4):
        number, digit = divmod(number, len(_ASIN_CHARACTERS))
        tail += _ASIN_CHARACTERS[digit]
    draw = random.Random(f"{seed}/asin/{index}")
    return "B0" + "".join(draw.choices(_ASIN_CHARACTERS, k=4)) + tail


def _options(family: Family, draw: random.Random) -> dict[str, list[dict[str, str]]] | str:
    groups = {}
    for name, values in family.options.items():
        chosen = set(draw.sample(values, draw.randint(2, min(_MAX_VALUES, len(values)))))
        groups[name.title()] = [{"value": value} for value in values if value in chosen]
    return groups or ""  # as in the original's file


def _pricing(family: Family, draw: random.Random) -> str:
    low, high = family.prices
    price = draw.randrange(100 * low, 100 * high) / 100
    if draw.random() < _SHARE_WITH_RANGE:
        return f"${price} - ${round(1.4 * price, 2)}"
    return f"${price}"
