"""The shops of the tests: the generated one, and WebShop's own products where they are at hand."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

pytest.importorskip("rapidfuzz", reason="WebShop needs the extra 'webshop': pip install -e '.[webshop]'")
pytest.importorskip("Stemmer", reason="WebShop needs the extra 'webshop': pip install -e '.[webshop]'")

from had.envs.webshop.generated import GeneratedShop
from had.envs.webshop.shop import Shop

_BESIDE = Path(__file__).resolve().parents[4] / "shared" / "data" / "webshop"


@pytest.fixture(scope="session")
def mini() -> Shop:
    """The generated shop."""
    return GeneratedShop().open()


@pytest.fixture(scope="session")
def webshop_data() -> Path:
    """The folder of WebShop's 1,000 products: $WEBSHOP_DATA, else beside the repository, else skip."""
    folder = Path(os.environ.get("WEBSHOP_DATA") or _BESIDE)
    if not (folder / "items_shuffle_1000.json").is_file():
        pytest.skip(f"no WebShop data: {folder} has no items_shuffle_1000.json ($WEBSHOP_DATA, see README)")
    return folder
