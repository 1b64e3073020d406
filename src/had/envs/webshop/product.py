"""A product of the shop, read from a record of the original's product file."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from had.envs.base import EnvFailure

MISSING_PRICE = 100.0  # the original's rule
MAX_ASIN_LENGTH = 10  # longer ones are damaged records of the crawl; the original leaves them out


@dataclass(frozen=True, slots=True)
class Product:
    """What a shopper sees of a product, and what the reward compares.

    Attributes:
        asin: the product's id.
        title, description: as sold.
        bullets: the features.
        price_text: as shown, e.g. `$9.38 to $30.32`.
        price_range: (lowest, highest) in dollars; equal where there is one price.
        options: (name, values) of every option group, in the order of the file; all lower case.
        attributes: properties mined from the texts, e.g. `machine washable`.
        category: the shop's department, e.g. `fashion`.
        query: the search under which the crawl found the product.
        category_path: e.g. `Home & Kitchen › Furniture`.
    """

    asin: str
    title: str
    description: str
    bullets: tuple[str, ...]
    price_text: str
    price_range: tuple[float, float]
    options: tuple[tuple[str, tuple[str, ...]], ...]
    attributes: tuple[str, ...]
    category: str
    query: str
    category_path: str

    @property
    def search_text(self) -> str:
        """The text that a search looks through."""
        options = ", and ".join(f"{name}: {', '.join(values)}" for name, values in self.options)
        first_bullet = self.bullets[0] if self.bullets else ""
        return " ".join([self.title, self.description, first_bullet, options]).lower()

    def sample_price(self, seed: int) -> float:
        """The price in dollars; drawn from the range, the same for the same seed and product."""
        low, high = self.price_range
        return low if low == high else random.Random(f"{seed}/{self.asin}/price").uniform(low, high)


def is_sold(raw: Mapping[str, Any]) -> bool:
    """False for records that the original leaves out."""
    return raw["asin"] != "nan" and len(raw["asin"]) <= MAX_ASIN_LENGTH


def read_product(raw: Mapping[str, Any], annotation: Mapping[str, Any]) -> Product:
    """The product of one record of the product file.

    Args:
        raw: the record.
        annotation: the product's entry in the attribute file; empty when it has none.

    Raises:
        ValueError: a field is missing or of another kind.
    """
    try:
        bullets = raw["small_description"]
        text, price_range = _read_price(raw.get("pricing"))
        return Product(
            asin=raw["asin"],
            title=raw["name"],
            description=raw["full_description"],
            bullets=tuple(bullets) if isinstance(bullets, list) else (bullets,),
            price_text=text,
            price_range=price_range,
            options=_read_options(raw["customization_options"]),
            attributes=tuple(annotation.get("attributes", ())),
            category=raw["category"],
            query=raw["query"].lower().strip(),
            category_path=raw["product_category"],
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(
            f"product {raw.get('asin')!r}: expected a record as in WebShop's items_shuffle_1000.json, "
            f"cannot read it ({error!r}); download the file again with the original's setup script"
        ) from error


def _read_price(pricing: str | None) -> tuple[str, tuple[float, float]]:
    """The shown text and the range; one or two amounts such as `$9.38 - $30.32`."""
    found = (re.sub(r"[^\d.]", "", part) for part in (pricing or "").split("$")[1:])
    amounts = [float(amount) for amount in found if amount]
    if not amounts:
        return f"${MISSING_PRICE}", (MISSING_PRICE, MISSING_PRICE)
    if len(amounts) == 1:
        return f"${amounts[0]}", (amounts[0], amounts[0])
    return f"${amounts[0]} to ${amounts[1]}", (amounts[0], amounts[1])


def _read_options(customization: Any) -> tuple[tuple[str, tuple[str, ...]], ...]:
    options: dict[str, tuple[str, ...]] = {}
    for name, contents in (customization or {}).items():
        if contents is not None:
            values = (content["value"].strip().replace("/", " | ").lower() for content in contents)
            options[name.lower()] = tuple(values)
    return tuple(options.items())


def product_failure(asin: str) -> EnvFailure:
    """What is raised when a goal names a product that the catalogue does not have."""
    return EnvFailure(f"the catalogue has no product {asin!r}: are the tasks those of another catalogue?")
