"""Says why the other tests of this folder are missing where the extra is not installed."""

from __future__ import annotations

import pytest

from .conftest import MISSING


def test_the_extra_is_installed() -> None:
    if MISSING:
        pytest.skip(f"WebShop's tests need {', '.join(MISSING)}: pip install -e '.[webshop]'")
