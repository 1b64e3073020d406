"""The rows of the rounds in Lightning's loggers, and the warning about the slowest phase."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from had.callbacks.round_costs import is_measured
from scripts import run_script


def rows(path: Path) -> list[dict[str, str]]:
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def logged_run(tiny_run: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with Lightning's CSV logger, which looks at single rounds from the first one on."""
    folder = tmp_path_factory.mktemp("logged") / "run"
    target = "lightning.pytorch.loggers.CSVLogger"
    logger = f"+logger.csv={{_target_: {target}, save_dir: ${{paths.output_dir}}, name: log}}"
    bottleneck = ["bottleneck.num_rounds=1", "bottleneck.num_warmup=0", "bottleneck.share=0.01"]
    assert run_script("train.py", *tiny_run, logger, *bottleneck, f"hydra.run.dir={folder}") == 0
    return folder


def test_a_logger_has_the_row_of_every_round_at_its_last_update(logged_run: Path):
    logged = [row for row in rows(logged_run / "log" / "version_0" / "metrics.csv") if row["round/round"]]
    rounds, updates = rows(logged_run / "rounds.csv"), rows(logged_run / "updates.csv")
    last = {row["round"]: row["update"] for row in updates}
    assert [row["step"] for row in logged] == [last[row["round"]] for row in rounds]
    for found, expected in zip(logged, rounds, strict=True):
        for name, value in expected.items():
            if value:
                assert float(found[f"round/{name}"]) == pytest.approx(float(value))


def test_the_slowest_phase_is_named_with_its_setting(logged_run: Path):
    (log,) = logged_run.glob("*.log")
    warnings = [line for line in log.read_text("utf-8").splitlines() if "of the last 1 rounds" in line]
    assert any("collect:" in line and "env.num_slots (now 16)" in line for line in warnings)
    named = [line.split("- ")[-1].partition(":")[0] for line in warnings]
    assert len(named) == len(set(named))


def test_a_run_is_the_same_with_and_without_a_logger(logged_run: Path, finished_run: Path):
    plain = [
        [{k: v for k, v in row.items() if not is_measured(k)} for row in rows(folder / "rounds.csv")]
        for folder in (logged_run, finished_run)
    ]
    assert plain[0] == plain[1]
