"""A report on finished runs: a comparison, figures of each run, and one page that holds everything."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from glob import glob
from pathlib import Path
from typing import Any

from had.reports import figures, html
from had.reports.comparison import ALL_SPLITS, COMPARISON_FILE, Job, find_jobs, overview_table
from had.reports.method_figures import curves_of_methods, gains_of_methods
from had.reports.runs import Run
from had.reports.tables import (
    SHORT_METRICS,
    Table,
    before_after_table,
    comparison_table,
    evaluation_table,
    markdown,
    seeds_table,
)

PAGE_FILE = "report.html"
METHOD_METRICS = ("sr", "sr_mean_of_splits", "turns_success", "hu", "prevention", "recovery")
MAX_LABEL = 60  # characters; a longer label would squeeze the numbers of its row


def find_runs(patterns: Sequence[str]) -> list[Job]:
    """The runs at or below the folders that the patterns name.

    Args:
        patterns: folders, or globs of folders.

    Raises:
        FileNotFoundError: nothing matches, or there is no run in what matches.
    """
    folders = [Path(name) for pattern in patterns for name in sorted(glob(str(Path(pattern).expanduser())))]
    if not folders:
        raise FileNotFoundError(f"runs: expected folders with runs at or below, nothing matches {patterns}")
    return [replace(job, label=_short_label(job)) for job in find_jobs(*folders)]


def _short_label(job: Job) -> str:
    """The overrides that tell the run from the others, or its folder's name where these are too many."""
    return job.label if len(job.label) <= MAX_LABEL else job.folder.name


def write_report(jobs: Sequence[Job], folder: Path) -> Table:
    """Write `comparison.md`, the figures of each run and of the methods as PNG, and `report.html`.

    Args:
        jobs: the runs; those that have not ended appear in the overview only.
        folder: where the files go.

    Returns:
        The overview, a row per run.
    """
    folder.mkdir(parents=True, exist_ok=True)
    overview = overview_table(jobs)
    runs = [job.run for job in jobs if job.run is not None]
    evaluations = dict.fromkeys((s, c) for run in runs for s in run.after for c in run.after[s])
    tables = [overview, *(comparison_table(runs, split, condition) for split, condition in evaluations)]
    (folder / COMPARISON_FILE).write_text("\n".join(map(markdown, tables)), encoding="utf-8")
    parts = [html.table(overview), *_method_parts(runs, folder)]
    for number, job in enumerate(jobs, start=1):
        parts += [html.heading(f"{number}. {job.label}"), *_run_parts(job, folder / f"run_{number:02d}")]
    (folder / PAGE_FILE).write_text(html.page("Runs", parts), encoding="utf-8")
    return overview


def _method_parts(runs: Sequence[Run], folder: Path) -> list[str]:
    """The part of the page about several training runs of one environment; nothing for a single run."""
    trained = [run for run in runs if run.before and (run.folder / "eval.csv").exists()]
    if len(trained) < 2 or len({run.env for run in trained}) > 1:
        return []
    split = ALL_SPLITS if ALL_SPLITS in trained[0].after else next(iter(trained[0].after))
    parts = [html.table(seeds_table(trained, split, metrics=METHOD_METRICS))]
    drawn = (
        ("before and after by method", gains_of_methods(trained, folder / "methods_before_after.png")),
        ("validation by method", curves_of_methods(trained, folder / "methods_curves.png")),
    )
    return [*parts, *(html.figure(path, name) for name, path in drawn)]


def _run_parts(job: Job, stem: Path) -> list[str]:
    """The part of the page about one run; its figures are written as `<stem>_<name>.png`."""
    if job.run is None:
        return ["<p>This run has not ended.</p>"]
    run = job.run
    is_training = bool(run.before)
    results = before_after_table if is_training else evaluation_table
    parts = [html.table(results(run, metrics=SHORT_METRICS))]
    for name, path in _draw(run, stem):
        parts.append(html.figure(path, f"{name} of {job.label}"))
    episode = example_episode(run)
    if episode is not None:
        parts.append(html.folded(f"An episode after training: {episode['goal']}", html.episode_text(episode)))
    return parts


def _draw(run: Run, stem: Path) -> list[tuple[str, Path]]:
    """The figures that the run has the numbers for."""
    drawn = []
    if (run.folder / "updates.csv").exists():
        path = stem.with_name(f"{stem.name}_curves.png")
        drawn.append(("learning curves", figures.learning_curves(run.folder, path)))
    if run.before:
        path = stem.with_name(f"{stem.name}_before_after.png")
        drawn.append(("before and after", figures.before_after_bars(run, path)))
    if run.disagreement and run.disagreement["disagreement"].count:
        path = stem.with_name(f"{stem.name}_disagreement.png")
        drawn.append(("disagreement", figures.disagreement_by_position(run.disagreement, path)))
    return drawn


def example_episode(run: Run) -> dict[str, Any] | None:
    """The first episode that was won after training in the first split and condition, else the first one."""
    chosen = [(s, c) for s in run.after if s != ALL_SPLITS for c in run.after[s]]
    if not chosen:
        return None
    split, condition = chosen[0]
    path = run.folder / "transcripts" / f"after_{split}_{condition}.jsonl"
    if not path.exists():
        return None
    episodes = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    won = [episode for episode in episodes if episode["status"] == "won"]
    return (won or episodes)[0]
