"""Run folders, as tests compare them."""

from __future__ import annotations

import csv
from pathlib import Path

import torch
from safetensors.torch import load_file

from had.callbacks.round_costs import is_measured


def table(folder: Path, name: str) -> list[dict[str, str]]:
    """A CSV file without what the machine and the number of ranks decide."""
    with open(folder / name, encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return [{k: v for k, v in row.items() if not is_measured(k)} for row in rows]


def assert_equal_runs(folder: Path, expected: Path) -> None:
    """Equal tables and equal weights, bit for bit."""
    for name in ("updates.csv", "rounds.csv", "eval.csv"):
        assert table(folder, name) == table(expected, name)
    for student in ("last", "best"):
        found, wanted = (
            load_file(side / "student" / student / "model.safetensors") for side in (folder, expected)
        )
        assert found.keys() == wanted.keys()
        assert all(torch.equal(found[name], wanted[name]) for name in wanted)
