"""Fuzzy equality of attributes and option values."""

from __future__ import annotations

from functools import lru_cache

try:
    from rapidfuzz import fuzz
    from rapidfuzz.utils import default_process
except ImportError as error:  # an extra: ALFWorld does not need it
    raise ImportError(
        "WebShop compares options with the package rapidfuzz, which is not installed: "
        "pip install -e '.[webshop]'"
    ) from error

MIN_SCORE = 85  # matches score above it, on the scale 0..100 rounded to whole numbers
# The published rule drops the characters of the upper half of Latin-1 before it compares.
_DROPPED = dict.fromkeys(range(128, 256))


@lru_cache(maxsize=65536)
def is_match(first: str, second: str) -> bool:
    """True when the words of one text are (nearly) those of the other, or contained in them."""
    score = fuzz.token_set_ratio(_prepare(first), _prepare(second))
    return round(score) > MIN_SCORE


def _prepare(text: str) -> str:
    """Lower case, everything but letters and digits as spaces."""
    return default_process(text.translate(_DROPPED))
