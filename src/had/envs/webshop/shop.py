"""A shop: a catalogue, the goals of its shoppers, and what a purchase is worth."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Protocol

from had.envs.webshop.catalogue import Catalogue
from had.envs.webshop.goal import Goal
from had.envs.webshop.nouns import TitleNouns
from had.envs.webshop.product import Product
from had.envs.webshop.reward import Reward, Titled, judge_purchase


@dataclass(frozen=True)
class Shop:
    """What all episodes share; nothing in it changes.

    Attributes:
        catalogue: the products.
        goals: in the original's order: shuffled, the test goals first.
        nouns: of the product titles.
        seed: decides the prices of products that are sold at a range of prices.
    """

    catalogue: Catalogue
    goals: tuple[Goal, ...]
    nouns: TitleNouns
    seed: int

    def judge(self, asin: str, options: Collection[str], goal: Goal) -> Reward:
        """The reward of buying a product with the given option values."""
        bought = self._titled(asin)
        price = bought.product.sample_price(self.seed)
        return judge_purchase(bought, options, price, goal, self._titled(goal.asin))

    def _titled(self, asin: str) -> Titled:
        product: Product = self.catalogue.product(asin)
        return Titled(product, self.nouns.of(product))


class ShopSource(Protocol):
    """Where a shop comes from: a small value that can be sent to worker processes."""

    @property
    def name(self) -> str:
        """First part of the task ids."""

    def open(self) -> Shop:
        """The shop; loaded once per process.

        Raises:
            FileNotFoundError: its files are missing (the message says which and how to get them).
        """
