"""Fixtures for tests that need data which cannot be part of the project."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

# Before torch is imported anywhere: waiting threads must not take the cores from other processes of a test.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("GOMP_SPINCOUNT", "0")

_PACK = Path(__file__).resolve().parents[2] / "shared" / "data" / "alfworld" / "unpack.py"


@pytest.fixture(scope="session")
def alfworld_data(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder that holds ALFWorld's `json_2.1.1`: $ALFWORLD_DATA, else unpacked here, else skip."""
    given = os.environ.get("ALFWORLD_DATA")
    # Importing alfworld sets the variable to a folder that may hold nothing, hence the look inside.
    if given and (Path(given) / "json_2.1.1").is_dir():
        yield Path(given)
        return
    if not _PACK.is_file():
        pytest.skip(f"no ALFWorld games: $ALFWORLD_DATA has no json_2.1.1, and no {_PACK} (see README)")
    target = tmp_path_factory.mktemp("alfworld")
    subprocess.run([sys.executable, str(_PACK), str(target)], check=True, stdout=subprocess.DEVNULL)
    yield target
    shutil.rmtree(target)  # 340 MB that pytest would keep for three sessions


@pytest.fixture(scope="session")
def alfworld_games(alfworld_data: Path) -> dict[str, list[Path]]:
    """All game files by split, sorted."""
    root = alfworld_data / "json_2.1.1"
    splits = ("train", "valid_seen", "valid_unseen")
    return {split: sorted((root / split).glob("*/*/game.tw-pddl")) for split in splits}
