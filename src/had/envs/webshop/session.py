"""A shopper's way through the shop: the rules by which searches and clicks lead from page to page."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from had.envs.webshop import pages
from had.envs.webshop.goal import Goal
from had.envs.webshop.pages import Page, PageKind
from had.envs.webshop.product import Product
from had.envs.webshop.reward import Reward
from had.envs.webshop.shop import Shop


class Session:
    """One shopper with one goal.

    Attributes:
        shop, goal: where and what for.
        page: where the shopper is.
        results: ids of the products that the last search found.
        options: name -> selected value, for the product that is open; every page of results clears them.
        reward: of the purchase; None before.
    """

    def __init__(self, shop: Shop, goal: Goal) -> None:
        self.shop, self.goal = shop, goal
        self.page = pages.SEARCH_PAGE
        self.results: list[str] = []
        self.options: dict[str, str] = {}
        self.reward: Reward | None = None
        self._clickable = self._find_clickable()

    @property
    def clickable(self) -> tuple[str, ...]:
        """What can be clicked, in lower case: buttons, then product ids, then option values."""
        return tuple(self._clickable)

    @property
    def product(self) -> Product | None:
        """The product that is open."""
        return self.shop.catalogue.product(self.page.asin) if self.page.asin else None

    @property
    def listed(self) -> list[Product]:
        """The products that the results page lists."""
        first = (self.page.number - 1) * pages.RESULTS_PER_PAGE
        asins = self.results[first : first + pages.RESULTS_PER_PAGE]
        return [self.shop.catalogue.product(asin) for asin in asins]

    @property
    def unselected(self) -> tuple[str, ...]:
        """Names of the open product's option groups that have no selection yet."""
        product = self.product
        groups = product.options if product is not None else ()
        return tuple(name for name, values in groups if values and name not in self.options)

    def search(self, query: str) -> None:
        """Search; possible on every page but the last."""
        self.results = self.shop.catalogue.search(query, pages.MAX_RESULTS)
        self._show_results(query, 1)
        self._clickable = self._find_clickable()

    def click(self, name: str) -> bool:
        """Click something; False when the page has no such thing."""
        action = self._clickable.get(name)
        if action is None:
            return False
        action()
        self._clickable = self._find_clickable()
        return True

    def texts(self) -> list[str]:
        """The visible texts of the page."""
        match self.page.kind:
            case PageKind.SEARCH:
                return pages.search_texts()
            case PageKind.RESULTS:
                return pages.results_texts(self.page.number, len(self.results), self.listed)
            case PageKind.DONE:
                assert self.reward is not None
                return pages.done_texts(self.reward.value)
        product = self.product
        assert product is not None
        if self.page.kind is PageKind.DETAIL:
            return pages.detail_texts(product, self.page.detail)
        return pages.product_texts(product)

    def _find_clickable(self) -> dict[str, Callable[[], None]]:
        back = {pages.BACK_TO_SEARCH.lower(): self._go_to_search}
        page = self.page
        match page.kind:
            case PageKind.RESULTS:
                return back | self._on_results_page()
            case PageKind.PRODUCT:
                return back | self._on_product_page()
            case PageKind.DETAIL:
                return back | {pages.PREVIOUS.lower(): partial(self._open, page.asin)}
        return {}

    def _on_results_page(self) -> dict[str, Callable[[], None]]:
        page = self.page
        targets = {pages.PREVIOUS: page.number - 1, pages.NEXT: page.number + 1}
        buttons = pages.results_buttons(page.number, len(self.results))
        turning: dict[str, Callable[[], None]] = {
            button.lower(): partial(self._show_results, page.query, targets[button])
            for button in buttons
            if button in targets
        }
        return turning | {product.asin.lower(): partial(self._open, product.asin) for product in self.listed}

    def _on_product_page(self) -> dict[str, Callable[[], None]]:
        page, product = self.page, self.product
        assert product is not None
        # a value that two groups share belongs to the last of them
        options: dict[str, Callable[[], None]] = {
            value: partial(self._select, name, value)
            for name, values in product.options
            for value in values
            if value
        }
        buttons: dict[str, Callable[[], None]] = {
            pages.PREVIOUS.lower(): partial(self._show_results, page.query, page.number),
            **{detail.lower(): partial(self._open_detail, detail) for detail in pages.DETAILS},
            pages.BUY.lower(): self._buy,
        }
        return buttons | {value: select for value, select in options.items() if value not in buttons}

    def _go_to_search(self) -> None:
        self.page, self.results, self.options = pages.SEARCH_PAGE, [], {}

    def _show_results(self, query: str, number: int) -> None:
        self.page, self.options = Page(PageKind.RESULTS, query, number), {}

    def _open(self, asin: str) -> None:
        self.page = replace(self.page, kind=PageKind.PRODUCT, asin=asin, detail="")

    def _open_detail(self, detail: str) -> None:
        self.page = replace(self.page, kind=PageKind.DETAIL, detail=detail)

    def _select(self, name: str, value: str) -> None:
        self.options = self.options | {name: value}

    def _buy(self) -> None:
        self.reward = self.shop.judge(self.page.asin, tuple(self.options.values()), self.goal)
        self.page = replace(self.page, kind=PageKind.DONE)
