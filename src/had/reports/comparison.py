"""One table over the runs below a folder, failed ones included, for the terminal and as `comparison.md`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml
from rich.console import Console

from had.metrics.intervals import Estimate
from had.reports.runs import SUMMARY_FILE, Run, read_run
from had.reports.tables import NONE, Table, comparison_table, format_estimate, markdown, rich_table

COMPARISON_FILE = "comparison.md"
ALL_SPLITS = "all"
WIDTH = 200  # characters of the printed table: a terminal's width would break the numbers
OVERVIEW_METRICS = ("hu", "prevention", "recovery")  # beside the success rates of all splits and conditions
_OVERRIDES_FILE = Path(".hydra") / "overrides.yaml"


@dataclass(frozen=True)
class Job:
    """One run folder of a comparison.

    Attributes:
        label: what distinguishes the run from the others.
        folder: the run folder.
        run: what it reached; None when it has not ended.
    """

    label: str
    folder: Path
    run: Run | None


def find_jobs(*folders: Path | str) -> list[Job]:
    """Every run at or below the folders, in the order of their names (numbers by value).

    Raises:
        FileNotFoundError: there is none.
    """
    found = set()
    for folder in map(Path, folders):
        found |= {path.parent for path in folder.rglob(SUMMARY_FILE)}
        found |= {path.parent.parent for path in folder.rglob(str(_OVERRIDES_FILE))}
    if not found:
        raise FileNotFoundError(
            f"expected run folders (with {SUMMARY_FILE}) at or below {', '.join(map(str, folders))}, found "
            "none; pass the folder of a run or of a sweep"
        )
    ordered = sorted(found, key=_natural_key)
    labels = _labels(ordered)
    return [
        Job(label, folder, read_run(folder) if (folder / SUMMARY_FILE).exists() else None)
        for label, folder in zip(labels, ordered, strict=True)
    ]


def overview_table(jobs: Sequence[Job]) -> Table:
    """One row per job: success on every split under every harness condition, harness use, teacher budget."""
    runs = [job.run for job in jobs if job.run is not None]
    evaluations = list(dict.fromkeys((s, c) for run in runs for s in run.after for c in run.after[s]))
    rates = [(split, condition) for split, condition in evaluations if split != ALL_SPLITS]
    pooled = ALL_SPLITS if (ALL_SPLITS, "full") in evaluations else rates[0][0] if rates else ""
    headers = (
        *("run", "method", "env", "updates"),
        *(f"sr {split}, {condition}" for split, condition in rates),
        *(f"{name} {pooled}" for name in OVERVIEW_METRICS),
        *("queries", "generated", "scored"),
    )
    return Table(
        title=f"{len(jobs)} runs after training",
        headers=headers,
        rows=tuple(_row(job, rates, pooled, len(headers)) for job in jobs),
        caption="Shares in per cent; [95 % interval], n cases. Last columns: answers and tokens that the "
        "teacher generated, tokens that it scored.",
    )


def write_comparison(folder: Path | str) -> Table:
    """Write `comparison.md` (the overview, then a table per split and condition) and return the overview."""
    jobs = find_jobs(folder)
    overview = overview_table(jobs)
    runs = [job.run for job in jobs if job.run is not None]
    evaluations = dict.fromkeys((s, c) for run in runs for s in run.after for c in run.after[s])
    tables = [overview, *(comparison_table(runs, split, condition) for split, condition in evaluations)]
    (Path(folder) / COMPARISON_FILE).write_text("\n".join(map(markdown, tables)), encoding="utf-8")
    return overview


def show(overview: Table) -> None:
    """Print the overview, wide."""
    Console(width=WIDTH).print(rich_table(overview))


def report(folder: Path) -> None:
    """Write `comparison.md` and print the overview."""
    show(write_comparison(folder))


def _row(job: Job, rates: Sequence[tuple[str, str]], pooled: str, num_cells: int) -> tuple[str, ...]:
    if job.run is None:
        return (job.label, "did not end", *[NONE] * (num_cells - 2))
    run = job.run

    def cell(split: str, condition: str, name: str) -> str:
        return format_estimate(name, run.after.get(split, {}).get(condition, {}).get(name, Estimate()))

    return (
        *(job.label, run.method, run.env, str(run.updates)),
        *(cell(split, condition, "sr") for split, condition in rates),
        *(cell(pooled, "full", name) for name in OVERVIEW_METRICS),
        *(str(run.teacher.get(n, NONE)) for n in ("queries", "tokens_generated", "tokens_scored")),
    )


def _labels(folders: Sequence[Path]) -> list[str]:
    """The overrides that not all runs have in common, else the name of the folder."""
    overrides = [_overrides(folder) for folder in folders]
    common = set(overrides[0]).intersection(*overrides)
    labels = [" ".join(item for item in items if item not in common) for items in overrides]
    return [label or folder.name for label, folder in zip(labels, folders, strict=True)]


def _overrides(folder: Path) -> list[str]:
    path = folder / _OVERRIDES_FILE
    return yaml.safe_load(path.read_text(encoding="utf-8")) or [] if path.exists() else []


def _natural_key(path: Path) -> list[tuple[int, str]]:
    """So that run 10 follows run 9."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", str(path))]
