import copy
import io
import json
from dataclasses import replace

import pytest
from rich.console import Console

from had.metrics.intervals import Estimate
from had.reports.runs import as_results, read_run
from had.reports.tables import before_after_table, comparison_table, markdown, rich_table, seeds_table

BEFORE = {
    "sr": {"value": 0.25, "low": 0.2, "high": 0.31, "count": 200},
    "hu_stall": {"value": None, "low": None, "high": None, "count": 0},
    "score": {"value": -16.47, "low": -20.0, "high": -12.0, "count": 200},
    "num_failed": {"value": 2, "low": None, "high": None, "count": 200},
}
AFTER = {
    "sr": {"value": 0.5, "low": 0.43, "high": 0.57, "count": 200},
    "hu_stall": {"value": 0.25, "low": 0.1, "high": 0.4, "count": 20},
    "score": {"value": 4.17, "low": 1.0, "high": 7.0, "count": 200},
    "num_failed": {"value": 0, "low": None, "high": None, "count": 200},
}
SUMMARY = {
    "method": "had",
    "env": "household",
    "seed": 1,
    "updates": 40,
    "before": {"seen": {"full": BEFORE}},
    "after": {"seen": {"full": AFTER, "off": AFTER}},
    "seconds": {"collect": 1.0, "label": 2.0, "train": 3.0, "evaluate": 4.0},
}


def run_in(folder, **changes):
    folder.mkdir(exist_ok=True)
    (folder / "summary.json").write_text(json.dumps({**copy.deepcopy(SUMMARY), **changes}))
    return read_run(folder)


def test_read_run(tmp_path):
    run = run_in(tmp_path)
    assert (run.method, run.seed, run.updates, run.seconds["train"]) == ("had", 1, 40, 3.0)
    assert run.after["seen"]["off"]["sr"] == Estimate(0.5, 0.43, 0.57, 200)


def test_errors_teach(tmp_path):
    with pytest.raises(FileNotFoundError, match="finished run"):
        read_run(tmp_path)
    (tmp_path / "summary.json").write_text("{")
    with pytest.raises(ValueError, match="expected JSON"):
        read_run(tmp_path)
    (tmp_path / "summary.json").write_text(json.dumps({"method": "had"}))
    with pytest.raises(ValueError, match="missing: env, seed"):
        read_run(tmp_path)
    with pytest.raises(ValueError, match=r"\{value, low, high, count\}.*in here"):
        as_results({"seen": {"full": {"sr": 0.5}}}, "here")


def test_before_after(tmp_path):
    table = before_after_table(run_in(tmp_path))
    rows = {row[:3]: row[3:] for row in table.rows}
    assert rows["seen", "full", "sr"][:2] == ("25.0 [20.0, 31.0] n=200", "50.0 [43.0, 57.0] n=200")
    assert rows["seen", "full", "sr"][2] == "+25.0 [+15.8, +33.6]"
    assert rows["seen", "full", "score"][2].startswith("+20.6 [")
    assert rows["seen", "full", "hu_stall"] == ("– n=0", "25.0 [10.0, 40.0] n=20", "–")
    assert rows["seen", "full", "num_failed"] == ("2 n=200", "0 n=200", "-2")
    assert rows["seen", "off", "sr"] == ("– n=0", "50.0 [43.0, 57.0] n=200", "–")
    assert [row[2] for row in table.rows[:4]] == ["sr", "score", "hu_stall", "num_failed"]
    assert table.section_ends == {3, 7}
    assert "independent" in table.caption


def test_before_after_with_paired_differences(tmp_path):
    differences = {"seen": {"full": {"sr": Estimate(0.25, 0.2, 0.3, 200)}}}
    table = before_after_table(replace(run_in(tmp_path), differences=differences))
    assert table.rows[0][-1] == "+25.0 [+20.0, +30.0]"
    assert "paired" in table.caption


def test_comparison_and_seeds(tmp_path):
    runs = [run_in(tmp_path / str(seed), seed=seed) for seed in range(3)]
    other = {"seen": {"full": {"sr": {"value": 0.8, "low": 0.7, "high": 0.9, "count": 9}}}}
    runs.append(run_in(tmp_path / "opd", method="opd", after=other))
    table = comparison_table(runs, "seen", metrics=("sr", "hu_stall"))
    assert table.rows[0] == (
        "had",
        "household",
        "0",
        "40",
        "50.0 [43.0, 57.0] n=200",
        "25.0 [10.0, 40.0] n=20",
    )
    assert table.rows[3] == ("opd", "household", "1", "40", "80.0 [70.0, 90.0] n=9", "– n=0")
    seeds = seeds_table(runs, "seen", metrics=("sr", "hu_stall"))
    assert seeds.rows == (
        ("had", "household", "40", "50.0 [50.0, 50.0] n=3", "25.0 [25.0, 25.0] n=3"),
        ("opd", "household", "40", "80.0 n=1", "– n=0"),
    )


def test_markdown_and_rich(tmp_path):
    table = before_after_table(run_in(tmp_path, method="a|b"))
    lines = markdown(table).splitlines()
    assert lines[0] == "**a|b on household, seed 1, 40 updates**"
    assert lines[2] == "| split | harness | metric | before | after | difference |"
    assert all(line.count("|") == 7 for line in lines[2 : 4 + len(table.rows)])
    console = Console(file=io.StringIO(), width=140)
    console.print(rich_table(table))
    assert "25.0 [20.0, 31.0] n=200" in console.file.getvalue()
