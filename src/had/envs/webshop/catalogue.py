"""The products of a shop and the search among them; `MemoryCatalogue` for catalogues that fit into memory."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from had.envs.webshop.bm25 import MemoryPostings, rank
from had.envs.webshop.product import Product, product_failure


class Catalogue(Protocol):
    """Products by id and by search."""

    def product(self, asin: str) -> Product:
        """One product.

        Raises:
            EnvFailure: there is no such product.
        """

    def search(self, query: str, limit: int) -> list[str]:
        """The ids of the best products for a query, best first."""


class MemoryCatalogue:
    """A `Catalogue` in memory; products whose id was seen before are left out."""

    def __init__(self, products: Iterable[Product]) -> None:
        self._products: dict[str, Product] = {}
        for product in products:
            self._products.setdefault(product.asin, product)
        self.asins = tuple(self._products)
        self._postings = MemoryPostings(product.search_text for product in self._products.values())

    def product(self, asin: str) -> Product:
        product = self._products.get(asin)
        if product is None:
            raise product_failure(asin)
        return product

    def search(self, query: str, limit: int) -> list[str]:
        return [self.asins[document] for document in rank(self._postings, query, limit)]
