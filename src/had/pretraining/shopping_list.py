"""Reads a shop's goals: what to search for, which option values to select, what it may cost."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_OPENING = re.compile(r"^\s*(?:find me|i am looking for|i'm looking for|i need|i want|buy me)\s+", re.I)
_LIMIT = re.compile(r",? and price lower than (?P<dollars>[\d.]+) dollars\.?\s*$")
_OPTIONS = re.compile(r"^(?P<thing>.*) with (?P<pairs>[^:,]+: .+)$")  # the last "with" before a colon
_PAIR = re.compile(r"^(?P<name>[^:,]+): (?P<value>.+)$")


@dataclass(frozen=True)
class ShoppingList:
    """A goal as a shopper understands it.

    Attributes:
        wanted: the thing and its properties, e.g. `machine washable cargo pants`.
        options: the values to select by the name of their group, in the order of the text.
        price_limit: in dollars; infinite where none is named.
    """

    wanted: str
    options: dict[str, str] = field(default_factory=dict)
    price_limit: float = float("inf")

    @property
    def values(self) -> tuple[str, ...]:
        """The values to select."""
        return tuple(self.options.values())


def read_goal(text: str) -> ShoppingList:
    """The list behind an instruction; free text that names no options is a thing to search for, all of it."""
    limit = _LIMIT.search(text)
    rest = text[: limit.start()] if limit else text
    rest, options = _split_options(rest.strip().rstrip(","))
    wanted = " ".join(_OPENING.sub("", rest).replace(",", " ").split()).lower().rstrip(".")
    return ShoppingList(wanted, options, float(limit["dollars"]) if limit else float("inf"))


def _split_options(text: str) -> tuple[str, dict[str, str]]:
    found = _OPTIONS.search(text)
    if found is None:
        return text, {}
    options: dict[str, str] = {}
    name = ""
    for piece in found["pairs"].split(", and "):
        pair = _PAIR.match(piece)
        if pair is not None:
            name = pair["name"].strip().lower()
            options[name] = pair["value"].strip().lower()
        elif name:  # the value itself holds a comma and an "and"
            options[name] += f", and {piece}".lower()
    return found["thing"], options
