"""Figures of a run as PNG files: learning curves, before and after, disagreement by position.

Figures are drawn on their own canvas, never through pyplot: no window system, no global state.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from had.metrics.intervals import Estimate
from had.reports.runs import Run, read_rows
from had.reports.tables import is_share

DPI = 120
CURVES = {
    "loss": ("loss_response", "loss_preference"),
    "gradient norm": ("grad_norm_response", "grad_norm_preference", "grad_norm_total"),
    "records": ("num_records", "num_pairs", "num_accepted", "num_differing"),
}
"""Panels of the learning curves and the columns of updates.csv in each."""

BAR_METRICS = ("sr", "hu", "prevention", "recovery")
NUM_BINS = 10


def learning_curves(folder: Path | str, path: Path | str, metrics: Sequence[str] = ("sr", "hu")) -> Path:
    """Draw updates.csv and eval.csv of a run folder.

    Args:
        folder: the run folder; without eval.csv only the updates are drawn.
        path: the PNG to write.
        metrics: metrics of eval.csv, one panel each.

    Raises:
        FileNotFoundError: the folder has no updates.csv.
    """
    updates = read_rows(Path(folder) / "updates.csv")
    evaluations = Path(folder) / "eval.csv"
    rows = read_rows(evaluations) if evaluations.exists() else []
    figure, panels = make_panels(len(CURVES) + (len(metrics) if rows else 0))
    for panel, (title, columns) in zip(panels, CURVES.items(), strict=False):
        for column in columns:
            xs, ys = number_series(updates, "update", column)
            panel.plot(xs, ys, label=column, linewidth=1)
        finish_panel(panel, title, "update")
    for panel, name in zip(panels[len(CURVES) :], metrics, strict=False):
        _draw_evaluations(panel, [row for row in rows if row["metric"] == name], name)
    return save_figure(figure, path)


def before_after_bars(run: Run, path: Path | str, metrics: Sequence[str] = BAR_METRICS) -> Path:
    """Draw shares before and after training with their intervals, one panel per split and condition."""
    keys = list(dict.fromkeys((s, c) for r in (run.before, run.after) for s in r for c in r[s]))
    figure, panels = make_panels(max(len(keys), 1))
    for panel, (split, condition) in zip(panels, keys, strict=False):
        for offset, (label, results) in enumerate((("before", run.before), ("after", run.after))):
            estimates = results.get(split, {}).get(condition, {})
            pooled = {name: estimates.get(f"{name}_mean_of_splits", Estimate()) for name in metrics}
            chosen = [estimates.get(name, pooled[name]) for name in metrics]
            _draw_bars(panel, chosen, label, offset * 0.4 - 0.2)
        panel.set_xticks(range(len(metrics)), metrics)
        panel.set_ylim(0, 100)
        finish_panel(panel, f"{split}, harness {condition}", "", "%")
    return save_figure(figure, path)


def disagreement_by_position(estimates: Mapping[str, Estimate], path: Path | str) -> Path:
    """Draw the disagreement rate of the teacher's two actions by relative position in the episode.

    Args:
        estimates: `disagreement_0` … `disagreement_9` and `disagreement`, as the metric gives them.
        path: the PNG to write.
    """
    figure, (panel, *_) = make_panels(1)
    bins = [estimates[f"disagreement_{i}"] for i in range(NUM_BINS)]
    _draw_bars(panel, bins, "by position", 0.0, width=0.8)
    overall = estimates["disagreement"]
    if overall.value is not None:
        label = f"all {overall.count} pairs: {100 * overall.value:.1f} %"
        panel.axhline(100 * overall.value, color="black", linestyle="--", linewidth=1, label=label)
    edges = range(NUM_BINS + 1)
    panel.set_xticks([i - 0.5 for i in edges], [f"{i / NUM_BINS:.1f}" for i in edges])
    finish_panel(
        panel, "Different actions with and without the harness", "relative position in the episode", "%"
    )
    return save_figure(figure, path)


def _draw_evaluations(panel: Axes, rows: Sequence[Mapping[str, str]], name: str) -> None:
    """One line with its band per split and condition."""
    scale = 100 if is_share(name) else 1
    for split, condition in dict.fromkeys((row["split"], row["condition"]) for row in rows):
        chosen = [r for r in rows if (r["split"], r["condition"]) == (split, condition)]
        xs, ys = number_series(chosen, "update", "value")
        label = f"{split}, {condition}"
        (line,) = panel.plot(xs, [scale * y for y in ys], marker="o", markersize=3, label=label)
        lows, highs = number_series(chosen, "low", "high")
        if len(lows) == len(xs):
            band = ([scale * y for y in lows], [scale * y for y in highs])
            panel.fill_between(xs, *band, alpha=0.15, color=line.get_color())
    finish_panel(panel, name, "update", "%" if is_share(name) else "")


def _draw_bars(
    panel: Axes, estimates: Sequence[Estimate], label: str, shift: float, width: float = 0.4
) -> None:
    """Bars in per cent with error bars; an empty estimate leaves a gap."""
    xs = [i + shift for i, e in enumerate(estimates) if e.value is not None]
    values = [e.value for e in estimates if e.value is not None]
    panel.bar(xs, [100 * value for value in values], width=width, label=label)
    for x, estimate in zip(xs, (e for e in estimates if e.value is not None), strict=True):
        if estimate.low is not None and estimate.high is not None:
            panel.plot([x, x], [100 * estimate.low, 100 * estimate.high], color="black", linewidth=1)


def number_series(rows: Sequence[Mapping[str, str]], *columns: str) -> tuple[list[float], ...]:
    """The columns as numbers, without the rows in which one of them is empty or not finite."""
    cells = [[float(row[column] or "nan") for column in columns] for row in rows]
    kept = [values for values in cells if all(math.isfinite(value) for value in values)]
    return tuple([values[i] for values in kept] for i in range(len(columns)))


def make_panels(count: int) -> tuple[Figure, list[Axes]]:
    """A figure with `count` panels, at most three in a row, four as a square."""
    num_columns = 2 if count == 4 else min(count, 3)
    num_rows = -(-count // num_columns)
    figure = Figure(figsize=(4.5 * num_columns, 3.2 * num_rows), layout="constrained")
    FigureCanvasAgg(figure)
    return figure, [figure.add_subplot(num_rows, num_columns, i + 1) for i in range(count)]


def finish_panel(panel: Axes, title: str, x_label: str, y_label: str = "") -> None:
    """Title, axis labels, and a legend where something has a label."""
    panel.set_title(title, fontsize=9)
    panel.set_xlabel(x_label)
    panel.set_ylabel(y_label)
    if panel.get_legend_handles_labels()[1]:
        panel.legend(fontsize=7)


def save_figure(figure: Figure, path: Path | str) -> Path:
    """Write the figure as PNG; folders are made."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=DPI)
    return path
