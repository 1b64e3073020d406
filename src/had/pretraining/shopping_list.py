"""Reads a shop's goals: what to search for, which option values to select, what it may cost."""

from __future__ import annotations

import re
from dataclasses import dataclass

_OPENING = re.compile(r"^\s*(?:find me|i am looking for|i'm looking for|i need|i want|buy me)\s+", re.I)
_LIMIT = re.compile(r",? and price lower than (?P<dollars>[\d.]+) dollars\.?\s*$")
_OPTIONS = re.compile(r"^(?P<thing>.*) with (?P<pairs>[^:,]+: .+)$")  # the last "with" before a colon
_PAIR = re.compile(r"^[^:,]+: (?P<value>.+)$")


@dataclass(frozen=True)
class ShoppingList:
    """A goal as a shopper understands it.

    Attributes:
        wanted: the thing and its properties, e.g. `machine washable cargo pants`.
        values: option values to select, in the order of the text.
        price_limit: in dollars; infinite where none is named.
    """

    wanted: str
    values: tuple[str, ...] = ()
    price_limit: float = float("inf")


def read_goal(text: str) -> ShoppingList:
    """The list behind an instruction; free text that names no options is a thing to search for, all of it."""
    limit = _LIMIT.search(text)
    rest = text[: limit.start()] if limit else text
    rest, values = _split_options(rest.strip().rstrip(","))
    wanted = " ".join(_OPENING.sub("", rest).replace(",", " ").split()).lower().rstrip(".")
    return ShoppingList(wanted, values, float(limit["dollars"]) if limit else float("inf"))


def _split_options(text: str) -> tuple[str, tuple[str, ...]]:
    found = _OPTIONS.search(text)
    if found is None:
        return text, ()
    values: list[str] = []
    for piece in found["pairs"].split(", and "):
        pair = _PAIR.match(piece)
        if pair is not None:
            values.append(pair["value"].strip().lower())
        elif values:  # the value itself holds a comma and an "and"
            values[-1] = f"{values[-1]}, and {piece}".lower()
    return found["thing"], tuple(values)
