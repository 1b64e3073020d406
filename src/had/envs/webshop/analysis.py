"""From text to search terms, as Lucene's English analyser does it: words, stop words, Porter stems."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

try:
    import Stemmer
except ImportError as error:  # an extra: ALFWorld does not need it
    raise ImportError(
        "WebShop's search stems words with the package PyStemmer, which is not installed: "
        "pip install -e '.[webshop]'"
    ) from error

_STOP_WORDS = """
    a an and are as at be but by for if in into is it no not of on or such that the their then there these
    they this to was will with
"""
STOP_WORDS = frozenset(_STOP_WORDS.split())
_IDEOGRAPH = "\u3040-\u309f\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_PICTOGRAPH = (
    "©®™▶◀✔✖✨⭐\u2600-\u2605\u2607-\u2612\u2614-\u2685\u2690-\u2705\u2708-\u2712\u2763-\u2767"
    "\U0001f300-\U0001faff"
)
# Words as Unicode's annex 29 bounds them. An apostrophe, full stop or colon joins letters; an apostrophe,
# full stop, comma or semicolon joins digits; ideographs and pictographs stand alone.
_WORD = re.compile(
    rf"[{_IDEOGRAPH}]"
    rf"|[{_PICTOGRAPH}]\ufe0f?"
    rf"|[^\W{_IDEOGRAPH}¼½¾¹²³]"
    rf"(?:[^\W{_IDEOGRAPH}¼½¾¹²³]|[\u0300-\u036f]"
    r"|(?<=[^\W\d_])['’.:：·](?=[^\W\d_])|(?<=\d)['’.,;⁄](?=\d))*"
)
_POSSESSIVE = re.compile(r"['’]s$")
_VOWEL_CONSONANT = re.compile("[aeiouy][^aeiouy]")
_MIN_STEMMED = 3  # shorter words are their own stems
_porter = Stemmer.Stemmer("porter")


def terms(text: str) -> Iterator[str]:
    """The terms of a text, in order, repetitions included."""
    for word in _WORD.findall(text.lower()):
        term = _term(word)
        if term:
            yield term


@lru_cache(maxsize=262144)
def _term(word: str) -> str:
    """The stem of a word; empty for a stop word."""
    bare = _POSSESSIVE.sub("", word)
    if bare in STOP_WORDS or not bare.strip("_"):
        return ""
    return bare if len(bare) < _MIN_STEMMED else _stem(bare)


def _stem(word: str) -> str:
    """Porter's stem with two later rules of its author that Lucene has: `bli` -> `ble`, `logi` -> `log`."""
    stem: str = _porter.stemWord(word)
    if stem.endswith("bli") and _VOWEL_CONSONANT.search(stem[:-3]):
        stem = _porter.stemWord(f"{stem[:-1]}e")
    elif stem.endswith("logi") and _VOWEL_CONSONANT.search(stem[:-4]):
        stem = _porter.stemWord(stem[:-1])
    return stem
