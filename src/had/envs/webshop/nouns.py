"""The nouns of product titles: from a file that a tagger made, else by a rule of our own.

Titles are strings of names: a tagger calls nearly every word a noun that is neither a function word nor a
number. That is the rule used where there is no file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path

from had.envs.webshop.product import Product

_WORD = re.compile(r"[^\W\d_][^\W_]*")
_FUNCTION_WORDS = """
    a about above after all also an and any are as at available be been below between both but by can
    compatible could designed do does down during each eight every few fit fits five for four from full
    fully get has have he her here his how if imported in included includes into is it its just large
    made make makes many may me more most my near new nine no non nor not of off on one only onto or
    original other our out over own per seven she should since six so some such ten than that the their
    them then there these they this those three through to too two under until up upon used very via was
    we were what when where which while who will with within without would x you your
"""
_OTHER_WORDS = frozenset(_FUNCTION_WORDS.split())


def guess_nouns(title: str) -> frozenset[str]:
    """The words of a title that are neither function words nor numbers."""
    words = _WORD.findall(title.lower().replace("’", "'").replace("'s", " "))
    return frozenset(word for word in words if len(word) > 1 and word not in _OTHER_WORDS)


class TitleNouns:
    """Nouns by product.

    Args:
        known: asin -> nouns of the title; guessed for products that it does not have.
    """

    def __init__(self, known: Mapping[str, frozenset[str]] | None = None) -> None:
        self._known = dict(known or {})

    @classmethod
    def from_file(cls, path: Path) -> TitleNouns:
        """Read a JSON object of asin -> list of nouns."""
        plain = json.loads(path.read_text(encoding="utf-8"))
        return cls({asin: frozenset(nouns) for asin, nouns in plain.items()})

    def of(self, product: Product) -> frozenset[str]:
        """The nouns of the product's title, lower case."""
        nouns = self._known.get(product.asin)
        return guess_nouns(product.title) if nouns is None else nouns
