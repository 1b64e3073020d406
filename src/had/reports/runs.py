"""A finished run as its folder tells it: `summary.json` as estimates, and the rows of its CSV files."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from had.metrics.intervals import Estimate

Results = dict[str, dict[str, dict[str, Estimate]]]
"""{split: {harness condition: {metric: estimate}}}."""

SUMMARY_FILE = "summary.json"
_KEYS = ("method", "env", "seed", "updates", "before", "after", "seconds")


@dataclass(frozen=True)
class Run:
    """What one run did and reached.

    Attributes:
        folder: the run folder.
        method, env, seed: what was run.
        updates: optimizer steps.
        before, after: the evaluations before and after training; either may be empty.
        seconds: wall time by phase.
        differences: after − before, paired by task.
        teacher: what it was asked: queries, tokens_generated, tokens_scored, failures.
        disagreement: of its two actions on the training states, over all and by position.
    """

    folder: Path
    method: str
    env: str
    seed: int
    updates: int
    before: Results
    after: Results
    seconds: dict[str, float]
    differences: Results = field(default_factory=dict)
    teacher: dict[str, int] = field(default_factory=dict)
    disagreement: dict[str, Estimate] = field(default_factory=dict)


def read_run(folder: Path | str) -> Run:
    """Read the summary of a run folder.

    Raises:
        FileNotFoundError: the folder has no summary (the run has not ended).
        ValueError: the summary lacks a key, or a metric is not an estimate.
    """
    path = Path(folder) / SUMMARY_FILE
    if not path.exists():
        raise FileNotFoundError(
            f"expected {SUMMARY_FILE} in {path.parent}, found none: it is written when a run ends; "
            "pass the folder of a finished run"
        )
    try:
        summary = json.loads(path.read_text(encoding="utf-8"))
    except json.JSONDecodeError as error:
        raise ValueError(f"expected JSON in {path}, got: {error}; run again, or evaluate again") from error
    missing = [key for key in _KEYS if key not in summary]
    if missing:
        raise ValueError(f"expected the keys {', '.join(_KEYS)} in {path}, missing: {', '.join(missing)}")
    before, after = (as_results(summary[key], f"{path}, {key}") for key in ("before", "after"))
    return Run(
        folder=path.parent,
        method=summary["method"],
        env=summary["env"],
        seed=summary["seed"],
        updates=summary["updates"],
        before=before,
        after=after,
        seconds=summary["seconds"],
        differences=as_results(summary.get("differences", {}), f"{path}, differences"),
        teacher=summary.get("teacher", {}),
        disagreement={name: Estimate(**e) for name, e in summary.get("disagreement", {}).items()},
    )


def read_rows(path: Path | str) -> list[dict[str, str]]:
    """The rows of a CSV file of a run folder, every cell as text.

    Raises:
        FileNotFoundError: there is no such file.
    """
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def as_results(plain: Mapping[str, Any], source: str) -> Results:
    """Estimates in place of `{"value", "low", "high", "count"}`.

    Raises:
        ValueError: a metric has other keys; `source` says where.
    """
    try:
        return {
            split: {
                condition: {name: Estimate(**estimate) for name, estimate in metrics.items()}
                for condition, metrics in conditions.items()
            }
            for split, conditions in plain.items()
        }
    except (TypeError, AttributeError) as error:
        shape = "{split: {condition: {metric: {value, low, high, count}}}}"
        raise ValueError(f"expected {shape} in {source}, got: {error}") from error
