"""The tables of README.md from run folders, as Markdown.

`python experiments/small/tables.py evaluations logs/small/household_*`: saved models, evaluated.
`python experiments/small/tables.py runs logs/small/had_? logs/small/opd_?`: a row per training run.
`python experiments/small/tables.py changes logs/small/had_0`: every metric before and after one run.
`--also score`: further metrics of eval.csv, for environments that give scores.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from had.metrics.intervals import Estimate
from had.reports.runs import Run, read_run
from had.reports.tables import Table, format_change, format_estimate, markdown

BEHAVIOUR = ("hu", "prevention", "recovery")


def cell(name: str, results: dict[str, Estimate]) -> str:
    """A metric without its count, which the page tells."""
    return format_estimate(name, results.get(name, Estimate())).partition(" n=")[0]


def success_name(results: dict[str, Estimate]) -> str:
    """Success over several splits has a name of its own."""
    return "sr_pooled" if "sr_pooled" in results else "sr"


def evaluations(runs: Sequence[Run], also: Sequence[str] = ()) -> Table:
    """A row per evaluated model and harness condition: success by split, behaviour over all splits."""
    splits = [split for split in runs[0].after if split != "all"]
    pooled = "all" if "all" in runs[0].after else splits[0]
    rows = []
    for run in runs:
        for condition, results in run.after[pooled].items():
            success = (cell("sr", run.after[split][condition]) for split in splits)
            others = (cell(name, results) for name in (*also, *BEHAVIOUR))
            rows.append((run.folder.name, condition, *success, *others))
    headers = ("folder", "harness", *(f"SR {s}" for s in splits), *also, *BEHAVIOUR)
    return Table("Saved models", headers, tuple(rows))


def runs_table(runs: Sequence[Run], also: Sequence[str] = ()) -> Table:
    """A row per run: all splits with the harness, before and after, and what the teacher cost."""
    rows = []
    for run in runs:
        pooled = "all" if "all" in run.after else next(iter(run.after))
        old, new = run.before[pooled]["full"], run.after[pooled]["full"]
        success = success_name(new)
        change = format_change("sr", run.differences[pooled]["full"][success])
        others = (f"{cell(name, old).partition(' ')[0]} → {cell(name, new)}" for name in (*also, *BEHAVIOUR))
        tokens = f"{run.teacher['tokens_generated']:,} / {run.teacher['tokens_scored']:,}"
        seconds = f"{sum(run.seconds.values()):.0f}"
        sr = (cell(success, old), cell(success, new), change)
        rows.append((run.method, str(run.seed), *sr, *others, tokens, seconds))
    headers = ("method", "seed", "SR before", "SR after", "difference", *also, *BEHAVIOUR)
    return Table("Runs", (*headers, "teacher tokens generated / scored", "seconds"), tuple(rows))


def changes(runs: Sequence[Run], also: Sequence[str] = ()) -> Table:
    """Every metric of every condition before and after one run."""
    rows = []
    for run in runs:
        pooled = "all" if "all" in run.after else next(iter(run.after))
        for condition, new in run.after[pooled].items():
            old, paired = run.before[pooled][condition], run.differences[pooled][condition]
            for name in (success_name(new), *also, *BEHAVIOUR):
                change = format_change(name, paired.get(name, Estimate()))
                rows.append((run.folder.name, condition, name, cell(name, old), cell(name, new), change))
    headers = ("folder", "harness", "metric", "before", "after", "difference")
    return Table("Before and after", headers, tuple(rows))


KINDS = {"evaluations": evaluations, "runs": runs_table, "changes": changes}


def main() -> None:
    """Parse the command line and print."""
    keep_lines = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=keep_lines)
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--also", nargs="*", default=(), metavar="METRIC")
    arguments = parser.parse_args()
    runs = [read_run(folder) for folder in arguments.folders]
    print(markdown(KINDS[arguments.kind](runs, arguments.also)))


if __name__ == "__main__":
    main()
