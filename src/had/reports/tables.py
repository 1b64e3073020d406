"""Tables of results, for the terminal (rich) and for pages (Markdown).

Shares are stored as fractions and printed in per cent, every number with its 95 % interval and its count.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from rich.table import Table as RichTable

from had.metrics.intervals import Estimate, across_seeds, difference
from had.reports.runs import Run

METRICS = (
    "sr",
    "sr_mean_of_splits",
    "sr_pooled",
    "score",
    "reward",
    "turns_success",
    "hu",
    "hu_available",
    "hu_situation",
    "hu_budget",
    "hu_failure",
    "hu_stall",
    "prevention",
    "recovery",
    "num_failed",
)
"""All metrics in the order of the tables."""

SHORT_METRICS = ("sr", "sr_mean_of_splits", "turns_success", "hu", "prevention", "recovery")
"""What is printed at the end of a run."""

MAIN_METRICS = ("sr", "score", "turns_success", "hu", "prevention", "recovery")
_IN_OWN_UNITS = ("score", "reward", "turns_success")
_DIGITS = {"reward": 2, "num_failed": 0}
NONE = "–"


@dataclass(frozen=True)
class Table:
    """A table of text.

    Attributes:
        title: what it shows.
        headers: names of the columns.
        rows: cells; every row as long as `headers`.
        section_ends: indices of the rows after which a group ends.
        caption: how to read it.
    """

    title: str
    headers: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    section_ends: frozenset[int] = field(default_factory=frozenset)
    caption: str = ""


def rich_table(table: Table) -> RichTable:
    """The table for a rich console."""
    drawn = RichTable(title=table.title, caption=table.caption or None, caption_justify="left")
    for header in table.headers:
        drawn.add_column(header, overflow="fold")
    for index, row in enumerate(table.rows):
        drawn.add_row(*row, end_section=index in table.section_ends)
    return drawn


def markdown(table: Table) -> str:
    """The table as GitHub's Markdown, ending in a newline."""
    lines = [table.headers, tuple("---" for _ in table.headers), *table.rows]
    body = "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)
    caption = f"\n{table.caption}\n" if table.caption else ""
    return f"**{table.title}**\n\n{body}\n{caption}"


def before_after_table(run: Run, metrics: Sequence[str] | None = None) -> Table:
    """Metrics of one run before and after training.

    The difference is the task-paired one where the run has it; without, that of independent samples, which is
    too wide when both sides played the same tasks.

    Args:
        run: the run.
        metrics: which of them; None for all.
    """
    rows: list[tuple[str, ...]] = []
    section_ends = set()
    for split, condition in _evaluations(run):
        before, after = (r.get(split, {}).get(condition, {}) for r in (run.before, run.after))
        paired = run.differences.get(split, {}).get(condition, {})
        present = {*before, *after} if metrics is None else {*before, *after} & {*metrics}
        for name in _ordered(present):
            old, new = before.get(name, Estimate()), after.get(name, Estimate())
            change = paired.get(name, difference(old, new))
            cells = (format_estimate(name, old), format_estimate(name, new), format_change(name, change))
            rows.append((split, condition, name, *cells))
        section_ends.add(len(rows) - 1)
    how = "task-paired bootstrap" if run.differences else "as of independent samples"
    return Table(
        title=f"{run.method} on {run.env}, seed {run.seed}, {run.updates} updates",
        headers=("split", "harness", "metric", "before", "after", "difference"),
        rows=tuple(rows),
        section_ends=frozenset(section_ends),
        caption=f"Shares in per cent; [95 % interval], n cases. Difference: {how}.",
    )


def evaluation_table(run: Run, metrics: Sequence[str] | None = None) -> Table:
    """Metrics of one evaluation (`run.after`), a row per split and condition.

    Args:
        run: the run.
        metrics: which of them; None for all.
    """
    evaluations = [(split, condition) for split in run.after for condition in run.after[split]]
    present = {name for split, condition in evaluations for name in run.after[split][condition]}
    names = _ordered(present if metrics is None else present & {*metrics})
    rows = []
    for split, condition in evaluations:
        estimates = [run.after[split][condition].get(name) for name in names]
        cells = ("" if e is None else format_estimate(n, e) for n, e in zip(names, estimates, strict=True))
        rows.append((split, condition, *cells))
    return Table(
        title=f"{run.method} on {run.env}, seed {run.seed}",
        headers=("split", "harness", *names),
        rows=tuple(rows),
        caption="Shares in per cent; [95 % interval], n cases.",
    )


def comparison_table(
    runs: Sequence[Run], split: str, condition: str = "full", metrics: Sequence[str] = MAIN_METRICS
) -> Table:
    """One row per run: its results after training on one split under one harness condition."""
    rows = []
    for run in runs:
        after = run.after.get(split, {}).get(condition, {})
        cells = (format_estimate(name, after.get(name, Estimate())) for name in metrics)
        rows.append((run.method, run.env, str(run.seed), str(run.updates), *cells))
    return Table(
        title=f"After training: {split}, harness {condition}",
        headers=("method", "env", "seed", "updates", *metrics),
        rows=tuple(rows),
        caption="Shares in per cent; [95 % interval], n cases.",
    )


def seeds_table(
    runs: Sequence[Run], split: str, condition: str = "full", metrics: Sequence[str] = MAIN_METRICS
) -> Table:
    """One row per method, environment and number of updates: mean over seeds with Student's interval."""
    groups: dict[tuple[str, str, int], list[Run]] = {}
    for run in runs:
        groups.setdefault((run.method, run.env, run.updates), []).append(run)
    rows = []
    for (method, env, updates), members in groups.items():
        results = [run.after.get(split, {}).get(condition, {}) for run in members]
        cells = []
        for name in metrics:
            values = [r[name].value for r in results if name in r]
            cells.append(format_estimate(name, across_seeds([v for v in values if v is not None])))
        rows.append((method, env, str(updates), *cells))
    return Table(
        title=f"Mean over seeds after training: {split}, harness {condition}",
        headers=("method", "env", "updates", *metrics),
        rows=tuple(rows),
        caption="Shares in per cent; [95 % interval across seeds], n seeds.",
    )


def format_estimate(name: str, estimate: Estimate) -> str:
    """`12.5 [8.1, 18.9] n=128`; a dash where there is no case."""
    if estimate.value is None:
        return f"{NONE} n={estimate.count}"
    return f"{_number(name, estimate.value)}{_limits(name, estimate)} n={estimate.count}"


def format_change(name: str, change: Estimate) -> str:
    """`+3.1 [-1.0, +7.2]`; a dash where one side is missing."""
    if change.value is None:
        return NONE
    return f"{_number(name, change.value, '+')}{_limits(name, change, '+')}"


def is_share(name: str) -> bool:
    """The metric is a fraction, printed in per cent."""
    return name not in _IN_OWN_UNITS and not name.startswith("num_")


def _limits(name: str, estimate: Estimate, sign: str = "") -> str:
    if estimate.low is None or estimate.high is None:
        return ""
    return f" [{_number(name, estimate.low, sign)}, {_number(name, estimate.high, sign)}]"


def _number(name: str, value: float, sign: str = "") -> str:
    digits = _DIGITS.get(name, 1)
    scaled = round(100 * value if is_share(name) else value, digits) + 0.0  # no "-0.0"
    return f"{scaled:{sign}.{digits}f}"


def _evaluations(run: Run) -> list[tuple[str, str]]:
    """(split, condition) of all evaluations, in the order in which the run lists them."""
    pairs = [(split, condition) for r in (run.before, run.after) for split in r for condition in r[split]]
    return list(dict.fromkeys(pairs))


def _ordered(names: set[str]) -> list[str]:
    """The known metrics in the order of `METRICS`, then others by name."""
    return [n for n in METRICS if n in names] + sorted(names - set(METRICS))
