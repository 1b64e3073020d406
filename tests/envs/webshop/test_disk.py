"""The catalogue on disk: the same answers as in memory, in little memory."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest

from had.envs.base import EnvFailure
from had.envs.webshop import disk_index
from had.envs.webshop.catalogue import MemoryCatalogue
from had.envs.webshop.generated import make_record
from had.envs.webshop.original import OriginalShop
from had.envs.webshop.product import read_product

from .original_files import HUMAN_EVERY, write_files

_PLAYER = Path(__file__).parent / "play_on_disk.py"


def _large(folder: Path) -> OriginalShop:
    return OriginalShop(str(folder), size="all", goals="human", cache_dir=str(folder / "cache"))


def _queries(num_queries: int) -> list[str]:
    draw = random.Random(0)
    words = ["running", "shoes", "lamp", "vanilla", "pack", "red", "Kestrin", "non", "slip", "table", "6"]
    return [" ".join(draw.choices(words, k=draw.randint(1, 5))) for _ in range(num_queries)]


def test_it_answers_as_the_catalogue_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk_index, "_BLOCK", 128)  # several blocks
    write_files(tmp_path, 500)
    shop = _large(tmp_path).open()
    products = [read_product(*make_record(0, index)) for index in range(500)]
    memory = MemoryCatalogue(products)
    assert [shop.catalogue.product(product.asin) for product in products] == products
    for query in _queries(40):
        assert shop.catalogue.search(query, 50) == memory.search(query, 50)
    assert shop.catalogue.search("nothing", 50) == []
    with pytest.raises(EnvFailure, match="no product 'B000000000'"):
        shop.catalogue.product("B000000000")


def test_human_goals_are_those_of_the_version_in_memory(tmp_path: Path) -> None:
    write_files(tmp_path, 300)
    write_files(tmp_path, 300, size="1000")
    memory = OriginalShop(str(tmp_path), goals="human").open()
    disk = _large(tmp_path).open()
    assert len(disk.goals) == 30
    assert disk.goals == memory.goals


def test_the_index_is_made_once_and_again_when_a_file_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_files(tmp_path, 50)
    files = disk_index.IndexFiles(
        *(tmp_path / f"items_{name}.json" for name in ("shuffle", "ins_v2", "human_ins"))
    )
    first = disk_index.open_index(files, tmp_path / "cache", 0)
    made = first.stat().st_mtime_ns
    assert disk_index.open_index(files, tmp_path / "cache", 0) == first
    assert first.stat().st_mtime_ns == made
    write_files(tmp_path, 60)
    assert disk_index.open_index(files, tmp_path / "cache", 0) != first
    assert disk_index.open_index(files, tmp_path / "cache", 1) != disk_index.open_index(
        files, tmp_path / "cache", 0
    )


def test_an_interrupted_index_leaves_nothing(tmp_path: Path) -> None:
    write_files(tmp_path, 50)
    path = tmp_path / "items_shuffle.json"
    path.write_text(path.read_text(encoding="utf-8")[:-30], encoding="utf-8")
    with pytest.raises(ValueError, match=r"items_shuffle.json: expected whole JSON records"):
        _large(tmp_path).open()
    assert list((tmp_path / "cache").iterdir()) == []


def _play_large(folder: Path, num_products: int) -> int:
    """Index and play in a process of its own; its peak memory in KiB."""
    write_files(folder, num_products)
    command = [sys.executable, str(_PLAYER), str(folder)]
    num_goals, peak = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.split()
    assert int(num_goals) == num_products // HUMAN_EVERY
    return int(peak)


def test_twenty_thousand_products(tmp_path: Path) -> None:
    assert _play_large(tmp_path, 20_000) < 250 * 1024


@pytest.mark.slow
def test_two_hundred_thousand_products(tmp_path: Path) -> None:
    assert _play_large(tmp_path, 200_000) < 500 * 1024
