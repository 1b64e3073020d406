"""Products and goals made by hand."""

from __future__ import annotations

from had.envs.webshop.colours import normalise_colour
from had.envs.webshop.goal import Goal
from had.envs.webshop.product import Product


def make_product(asin: str = "B000000001", **fields: object) -> Product:
    """A product of which only the given fields matter."""
    plain: dict[str, object] = {
        "asin": asin,
        "title": "Oak Lamp",
        "description": "",
        "bullets": (),
        "price_text": "$25.0",
        "price_range": (25.0, 25.0),
        "options": (),
        "attributes": (),
        "category": "garden",
        "query": "lamps",
        "category_path": "Home › Lighting › Lamps",
    }
    return Product(**plain | fields)  # type: ignore[arg-type]


def make_goal(
    asin: str = "B000000001",
    attributes: tuple[str, ...] = ("solid wood",),
    options: tuple[str, ...] = (),
    price_limit: float = 30.0,
) -> Goal:
    """A goal whose options are compared by value."""
    texts = tuple(normalise_colour(option) for option in options)
    return Goal(asin, "find me a lamp", attributes, options, texts, price_limit)
