"""The pages of the shop: which one a shopper is on, and the texts that it shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from had.envs.webshop.product import Product

MAX_RESULTS = 50
RESULTS_PER_PAGE = 10

BACK_TO_SEARCH = "Back to Search"
NEXT = "Next >"
PREVIOUS = "< Prev"
BUY = "Buy Now"
DETAILS = ("Description", "Features", "Reviews")

SHOWN_QUERY_CHARACTERS = 100  # in the name of a page; a query may be thousands long


class PageKind(StrEnum):
    """The kinds of pages."""

    SEARCH = "search"
    RESULTS = "results"
    PRODUCT = "product"
    DETAIL = "detail"
    DONE = "done"


@dataclass(frozen=True)
class Page:
    """One page.

    Attributes:
        kind: which kind.
        query: the search that led here; empty on the search page.
        number: of the results page, from 1.
        asin: the product that is open, or empty.
        detail: which of `DETAILS` is open, or empty.
    """

    kind: PageKind
    query: str = ""
    number: int = 1
    asin: str = ""
    detail: str = ""

    @property
    def name(self) -> str:
        """What the harness calls the page; ids are in lower case, as in commands."""
        product = f"product {self.asin.lower()}"
        match self.kind:
            case PageKind.SEARCH:
                return "the search page"
            case PageKind.RESULTS:
                query = self.query
                if len(query) > SHOWN_QUERY_CHARACTERS:
                    query = f"{query[: SHOWN_QUERY_CHARACTERS - 1]}…"
                return f'results page {self.number} for "{query}"'
            case PageKind.PRODUCT:
                return product
            case PageKind.DETAIL:
                return f"the {self.detail.lower()} of {product}"
            case PageKind.DONE:
                return f"the purchase of {product}"


SEARCH_PAGE = Page(PageKind.SEARCH)


def search_texts() -> list[str]:
    """The search page; the task text is not repeated."""
    return ["WebShop", "Search"]


def results_buttons(number: int, num_results: int) -> list[str]:
    """The buttons of a results page."""
    buttons = [BACK_TO_SEARCH]
    if number > 1:
        buttons.append(PREVIOUS)
    if number * RESULTS_PER_PAGE < num_results:
        buttons.append(NEXT)
    return buttons


def results_texts(number: int, num_results: int, products: Sequence[Product]) -> list[str]:
    """A results page with the products that it lists."""
    back, *others = results_buttons(number, num_results)
    texts = [back, f"Page {number} (Total results: {num_results})", *others]
    for product in products:
        texts += [product.asin, product.title, product.price_text]
    return texts


def product_texts(product: Product) -> list[str]:
    """The page of a product. It does not show which options are selected, as in the original's text mode."""
    texts = [BACK_TO_SEARCH, PREVIOUS]
    for name, values in product.options:
        texts += [name, *values]
    return [*texts, product.title, f"Price: {product.price_text}", "Rating: N.A.", *DETAILS, BUY]


def detail_texts(product: Product, detail: str) -> list[str]:
    """A sub-page of a product."""
    contents: Sequence[str] = ("No reviews found",)  # the original's data have none
    if detail == "Description":
        contents = (product.description or "No Description",)
    elif detail == "Features":
        contents = product.bullets or ("No Features",)
    return [BACK_TO_SEARCH, PREVIOUS, *contents]


def done_texts(reward: float) -> list[str]:
    """The page after a purchase."""
    return ["Thank you for shopping with us!", "Your score (min 0.0, max 1.0)", str(reward)]
