"""The shops of the tests: the generated one, and WebShop's own products where they are at hand."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from had.envs.webshop.shop import Shop

MISSING = [name for name in ("rapidfuzz", "Stemmer") if importlib.util.find_spec(name) is None]
# Without the packages no other file of this folder can be imported; test_extra.py says so.
collect_ignore_glob = ["test_[!e]*.py", "test_env.py"] if MISSING else []

_BESIDE = Path(__file__).resolve().parents[4] / "shared" / "data" / "webshop"


@pytest.fixture(scope="session")
def mini() -> Shop:
    """The generated shop."""
    from had.envs.webshop.generated import GeneratedShop

    return GeneratedShop().open()


@pytest.fixture(scope="session")
def webshop_data() -> Path:
    """The folder of WebShop's 1,000 products: $WEBSHOP_DATA, else beside the repository, else skip."""
    folder = Path(os.environ.get("WEBSHOP_DATA") or _BESIDE)
    if not (folder / "items_shuffle_1000.json").is_file():
        pytest.skip(f"no WebShop data: {folder} has no items_shuffle_1000.json ($WEBSHOP_DATA, see README)")
    return folder
