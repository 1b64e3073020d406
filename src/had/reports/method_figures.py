"""Figures over several runs: what each method gained, and how it got there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from matplotlib.axes import Axes

from had.metrics.intervals import Estimate
from had.reports.figures import BAR_METRICS, finish_panel, make_panels, number_series, save_figure
from had.reports.runs import Run, read_rows
from had.reports.tables import is_share

ALL_SPLITS = "all"


def curves_of_methods(runs: Sequence[Run], path: Path | str, metrics: Sequence[str] = BAR_METRICS) -> Path:
    """Draw the validation during training: a panel per metric, a line per run, a colour per method.

    Args:
        runs: with eval.csv in their folders.
        path: the PNG to write.
        metrics: of eval.csv.
    """
    figure, axes = make_panels(len(metrics))
    colours = _colours(runs)
    rows = [(run, _validation(read_rows(run.folder / "eval.csv"))) for run in runs]
    for panel, name in zip(axes, metrics, strict=False):
        scale, labelled = 100 if is_share(name) else 1, set()
        for run, validation in rows:
            xs, ys = number_series([row for row in validation if row["metric"] == name], "update", "value")
            label = None if run.method in labelled or not xs else run.method
            labelled.add(run.method)
            values = [scale * y for y in ys]
            panel.plot(
                xs, values, label=label, color=colours[run.method], marker="o", markersize=3, linewidth=1
            )
        finish_panel(panel, f"{name}, validation games", "update", "%" if is_share(name) else "")
    return save_figure(figure, path)


def gains_of_methods(runs: Sequence[Run], path: Path | str, metrics: Sequence[str] = BAR_METRICS) -> Path:
    """Draw the results before and after training with their intervals: a row per run, a panel per metric.

    Args:
        runs: evaluated with the harness before and after.
        path: the PNG to write.
        metrics: pooled over the splits where there are several.
    """
    figure, axes = make_panels(len(metrics))
    colours = _colours(runs)
    for panel, name in zip(axes, metrics, strict=False):
        for y, run in enumerate(reversed(runs)):
            _draw_interval(panel, y + 0.12, _pooled(run.before, name), "lightgrey")
            _draw_interval(panel, y - 0.12, _pooled(run.after, name), colours[run.method])
        labels = [f"{run.method}, seed {run.seed}" for run in reversed(runs)]
        panel.set_yticks(range(len(runs)), labels, fontsize=7)
        finish_panel(panel, f"{name}, before (grey) and after", "%" if is_share(name) else "")
    return save_figure(figure, path)


def _pooled(results: Mapping[str, Mapping[str, Mapping[str, Estimate]]], name: str) -> Estimate:
    split = ALL_SPLITS if ALL_SPLITS in results else next(iter(results))
    found = results[split].get("full", {})
    return found.get(name) or found.get(f"{name}_mean_of_splits") or Estimate()


def _draw_interval(panel: Axes, y: float, estimate: Estimate, colour: str) -> None:
    if estimate.value is None or estimate.low is None or estimate.high is None:
        return
    panel.plot([100 * estimate.low, 100 * estimate.high], [y, y], color=colour, linewidth=2)
    panel.plot([100 * estimate.value], [y], color=colour, marker="o", markersize=5)


def _validation(rows: Sequence[Mapping[str, str]]) -> list[Mapping[str, str]]:
    """The rows of the split that was evaluated most often: the others are played before and after only."""
    updates = Counter(split for split, _ in {(row["split"], row["update"]) for row in rows})
    split = updates.most_common(1)[0][0] if updates else ""
    return [row for row in rows if (row["split"], row["condition"]) == (split, "full")]


def _colours(runs: Sequence[Run]) -> dict[str, str]:
    return {method: f"C{index}" for index, method in enumerate(dict.fromkeys(run.method for run in runs))}
