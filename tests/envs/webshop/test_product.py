"""Records of the original's product file."""

from __future__ import annotations

from typing import Any

import pytest

from had.envs.webshop.product import is_sold, read_product

_RAW: dict[str, Any] = {
    "asin": "B000000001",
    "name": "Oak Lamp",
    "full_description": "A lamp.",
    "small_description": ["Made of oak. ", "Bright."],
    "customization_options": {
        "Color": [{"value": " Dark Red/Blue ", "image": None}, {"value": "WHITE"}],
        "Size": None,
    },
    "category": "garden",
    "query": " Lamps ",
    "product_category": "Home › Lamps",
    "pricing": "$1,009.50",
    "images": [],
}


def _read(**changes: Any) -> Any:
    return read_product(_RAW | changes, {"attributes": ["solid wood"]})


def test_a_record_is_read_as_the_original_reads_it() -> None:
    product = _read()
    assert product.options == (("color", ("dark red | blue", "white")),)
    assert product.query == "lamps"
    assert product.attributes == ("solid wood",)
    assert product.bullets == ("Made of oak. ", "Bright.")
    assert product.search_text == "oak lamp a lamp. made of oak.  color: dark red | blue, white"


@pytest.mark.parametrize(
    ("pricing", "text", "price_range"),
    [
        ("$1,009.50", "$1009.5", (1009.5, 1009.5)),
        ("$9.38 - $30.32", "$9.38 to $30.32", (9.38, 30.32)),
        ("", "$100.0", (100.0, 100.0)),
        (None, "$100.0", (100.0, 100.0)),
        ("ask us", "$100.0", (100.0, 100.0)),
    ],
)
def test_prices(pricing: str | None, text: str, price_range: tuple[float, float]) -> None:
    product = _read(pricing=pricing)
    assert (product.price_text, product.price_range) == (text, price_range)


def test_a_price_range_is_sampled_by_seed_and_product() -> None:
    product = _read(pricing="$9.38 - $30.32")
    prices = {product.sample_price(seed) for seed in range(20)}
    assert len(prices) == 20
    assert all(9.38 <= price <= 30.32 for price in prices)
    assert product.sample_price(3) == _read(pricing="$9.38 - $30.32").sample_price(3)


def test_a_description_that_is_one_text_is_one_bullet() -> None:
    assert _read(small_description="All about it").bullets == ("All about it",)
    assert _read(small_description=[], customization_options="").search_text == "oak lamp a lamp.  "


def test_damaged_ids_are_not_sold() -> None:
    assert is_sold({"asin": "B000000001"})
    assert not is_sold({"asin": "nan"})
    assert not is_sold({"asin": "B0000000012"})


def test_a_record_of_another_kind_is_refused() -> None:
    with pytest.raises(ValueError, match="expected a record as in WebShop's items_shuffle"):
        read_product({"asin": "B000000001"}, {})
