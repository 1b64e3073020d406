"""A shopper that sees only what an agent sees: it searches, opens what fits, selects options and buys.

It exists to make small models for the shop: they imitate its commands and its one-line thoughts.
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass, field

from had.envs.webshop import pages
from had.envs.webshop.env import SEPARATOR
from had.pretraining.player import Decision, Habits
from had.pretraining.shopping_list import ShoppingList, read_goal
from had.records import Effect, EnvStep

_BUTTONS = (pages.BUY, pages.BACK_TO_SEARCH, pages.PREVIOUS, pages.NEXT)
BUY, BACK, PREVIOUS, NEXT = (f"click[{name.lower()}]" for name in _BUTTONS)
MAX_OPENED = 4  # products after which it takes what it finds: two turns each, of fifteen
_PRICE = re.compile(r"\$([\d.]+)")


@dataclass(frozen=True)
class Offer:
    """One product of a page of results, as the page shows it."""

    asin: str
    title: str
    price: float


def read_offers(observation: str) -> list[Offer]:
    """The products that a page of results lists: an id, a title and a price each."""
    texts = observation.split(SEPARATOR)
    return [
        Offer(asin.lower(), title, _price(price))
        for asin, title, price in zip(texts, texts[1:], texts[2:], strict=False)
        if re.fullmatch(r"[A-Z0-9]{10}", asin) and price.startswith("$")
    ]


def _price(text: str) -> float:
    amounts = [float(amount.rstrip(".")) for amount in _PRICE.findall(text)]
    return max(amounts) if amounts else 0.0


@dataclass
class Shopper:
    """An `ImitatedPlayer` of the shop.

    It opens products in the order of the search, which names the options too, as long as they are not too
    dear. Its thoughts say first what a small model can read off the page: the id that is opened, the group of
    an option before its value.

    A forgetful one opens a product drawn at random from the page of results, whatever it has seen and
    whatever is wanted; a careless one buys with options unselected.

    Attributes:
        habits: how well it plays.
        rng: randomness of bad habits.
    """

    habits: Habits = field(default_factory=Habits)
    rng: random.Random = field(default_factory=random.Random)
    _list: ShoppingList | None = None
    _step: EnvStep | None = None
    _page: str = ""
    _opened: set[str] = field(default_factory=set)
    _num_searches: int = 0

    def start(self, goal: str, step: EnvStep) -> None:
        """Begin an episode with the answer to reset."""
        self._list, self._step, self._page = read_goal(goal), step, step.observation
        self._opened, self._num_searches = set(), 0

    def observe(self, command: str | None, step: EnvStep) -> None:
        """Take in what a command (anybody's) did."""
        self._step = step
        if command is None or step.effect is Effect.NO_EFFECT:
            return  # the page stands as it was, whatever the agent was told
        self._page = step.observation
        if command.startswith("search["):
            self._num_searches += 1
        elif BUY in step.commands:
            self._opened.add(command.removeprefix("click[").removesuffix("]"))

    def decide(self) -> Decision:
        """The next thought and command."""
        commands = self._commands()
        if BUY in commands:
            return self._at_product()
        if PREVIOUS in commands and not read_offers(self._page):
            return Decision("I go back to the product.", PREVIOUS)
        return self._at_results() if BACK in commands else self._search()

    def _search(self) -> Decision:
        wanted = self._wanted
        words = [wanted.wanted, *wanted.values] if self._num_searches % 2 == 0 else [wanted.wanted]
        return Decision(f"I need {wanted.wanted}.", f"search[{' '.join(words)}]")

    def _at_results(self) -> Decision:
        listed = [offer for offer in read_offers(self._page) if f"click[{offer.asin}]" in self._commands()]
        if listed and self._forgets():
            return self._open(self.rng.choice(listed))
        fresh = [offer for offer in listed if offer.asin not in self._opened]
        fitting = [offer for offer in fresh if offer.price <= self._wanted.price_limit]
        if fitting:
            return self._open(fitting[0])
        if NEXT in self._commands():
            return Decision("Nothing here fits.", NEXT)
        return Decision("Nothing here fits.", BACK)

    def _open(self, offer: Offer) -> Decision:
        return Decision(f"I look at {offer.asin.upper()}.", f"click[{offer.asin}]")

    def _at_product(self) -> Decision:
        wanted, commands = self._wanted, self._commands()
        options = wanted.options.items()
        missing = [(name, value) for name, value in options if f"click[{value}]" not in commands]
        has_time = len(self._opened) < MAX_OPENED
        if self._slips():
            return Decision("I buy it.", BUY)
        if missing and has_time:
            name, value = missing[0]
            return Decision(f"No {name}: {value}.", PREVIOUS)
        selected = self._selected()
        for name, value in options:
            if (name, value) not in missing and value not in selected:
                return Decision(f"I select {name}: {value}.", f"click[{value}]")
        return Decision("All is selected." if wanted.values and not missing else "I buy it.", BUY)

    def _selected(self) -> set[str]:
        assert self._step is not None
        return {pair.partition(": ")[2] for pair in self._step.state.held}

    @property
    def _wanted(self) -> ShoppingList:
        assert self._list is not None, "start() comes first"
        return self._list

    def _commands(self) -> tuple[str, ...]:
        assert self._step is not None, "start() comes first"
        return self._step.commands

    def _forgets(self) -> bool:
        return self.rng.random() < self.habits.forgetfulness

    def _slips(self) -> bool:
        return self.rng.random() < self.habits.carelessness
