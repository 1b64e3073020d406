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
_STEM = 4  # letters by which words are compared: hoodies and Hooded, bookcases and Book
_WORD = re.compile(r"[a-z]+")
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


def _stems(text: str) -> set[str]:
    return {word[:_STEM] for word in _WORD.findall(text.lower()) if len(word) > 2}


@dataclass
class Shopper:
    """An `ImitatedPlayer` of the shop.

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
            return self._open(max(fitting, key=self._fit))  # the first of the best
        if NEXT in self._commands():
            return Decision("Nothing here fits.", NEXT)
        return Decision("Nothing here fits.", BACK)

    def _fit(self, offer: Offer) -> int:
        """Shared words; the last one wanted, which says what kind of thing it is, counts for three."""
        wanted, title = self._wanted.wanted, _stems(offer.title)
        kind = _stems(wanted.rpartition(" ")[2])
        return len(title & _stems(wanted)) + 2 * len(title & kind)

    def _open(self, offer: Offer) -> Decision:
        return Decision(f"{offer.title} may fit.", f"click[{offer.asin}]")

    def _at_product(self) -> Decision:
        wanted, commands = self._wanted, self._commands()
        missing = [value for value in wanted.values if f"click[{value}]" not in commands]
        has_time = len(self._opened) < MAX_OPENED
        if self._slips():
            return Decision("I buy it.", BUY)
        if missing and has_time:
            return Decision(f"It has no {missing[0]}.", PREVIOUS)
        selected = self._selected()
        for value in wanted.values:
            if value not in missing and value not in selected:
                return Decision(f"I select {value}.", f"click[{value}]")
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
