"""The same seed gives the same numbers; another seed gives others.

After a wanted change of texts, games or arithmetic: `UPDATE_GOLDEN=1 pytest tests/train/test_repeat.py`.
"""

from __future__ import annotations

import csv
import os
from pathlib import Path

import pytest

from scripts import run_script

GOLDEN = Path(__file__).with_name("golden_updates.csv")
FLOAT32 = 1e-5  # relative: what another CPU's kernels may change


def updates(folder: Path) -> list[dict[str, str]]:
    """The rows of updates.csv as they stand there, without the wall time."""
    with open(folder / "updates.csv", encoding="utf-8", newline="") as file:
        return [{k: v for k, v in row.items() if k != "seconds"} for row in csv.DictReader(file)]


def test_two_runs_with_one_seed_agree_in_every_digit(tiny_run: list[str], finished_run: Path, tmp_path: Path):
    assert run_script("train.py", *tiny_run, f"hydra.run.dir={tmp_path / 'again'}") == 0
    assert updates(tmp_path / "again") == updates(finished_run)


def test_another_seed_gives_other_numbers(tiny_run: list[str], finished_run: Path, tmp_path: Path):
    short = [*tiny_run, "seed=1", "trainer.max_steps=1", "evaluation.num_validation_tasks=0"]
    assert run_script("train.py", *short, f"hydra.run.dir={tmp_path / 'other'}") == 0
    first, other = updates(finished_run)[0], updates(tmp_path / "other")[0]
    assert other["loss_response"] != first["loss_response"]


def test_stored_updates_are_reproduced_to_the_precision_of_float32(finished_run: Path):
    """Bit for bit on one machine with one thread; other kernels may change the last digits."""
    if os.environ.get("UPDATE_GOLDEN"):
        lines = (finished_run / "updates.csv").read_text("utf-8").splitlines()
        GOLDEN.write_text("\n".join(line.rpartition(",")[0] for line in lines) + "\n", "utf-8")
    with open(GOLDEN, encoding="utf-8", newline="") as file:
        golden = list(csv.DictReader(file))
    found = updates(finished_run)
    assert len(found) == len(golden)
    for row, expected in zip(found, golden, strict=True):
        assert list(row) == list(expected)
        for name, value in expected.items():
            assert float(row[name]) == pytest.approx(float(value), rel=FLOAT32), (row["update"], name)
