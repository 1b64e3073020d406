"""Plays evaluation tasks before, during and after training, under any conditions, and keeps the results."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from lightning import Callback, LightningModule, Trainer

from had.metrics.functional import (
    TaskCounts,
    aggregate_differences,
    aggregate_metrics,
    evaluate_metrics,
    paired_differences,
    task_counts,
)
from had.records import Episode, EpisodeStatus, Task
from had.rollout.actor import Actor
from had.rollout.player import Player, derive_seed
from had.runtime.files import CsvAppender
from had.runtime.ranks import merged, own_indices
from had.runtime.stopwatch import Stopwatch

# split -> condition -> metric -> value, low, high, count
Results = dict[str, dict[str, dict[str, dict[str, Any]]]]
Counts = dict[str, dict[str, TaskCounts]]  # split -> condition -> counts by task
EVAL_COLUMNS = ("update", "split", "condition", "metric", "value", "low", "high", "count")
ALL_SPLITS = "all"


class Evaluator:
    """Plays splits under conditions and computes the metrics; every rank plays a share and gets all results.

    Args:
        player: environment, harness and prompts.
        actor: the student at the evaluation temperature.
        tasks: split -> tasks.
        conditions: names of harness conditions.
        seed: of wording and sampling; the same at every evaluation, so that before and after are paired.
        transcripts: takes (name, episodes) of every evaluated split and condition.

    Attributes:
        counts: of the last evaluation, for differences between two of them.
        seconds: wall time of all evaluations.
    """

    def __init__(
        self,
        player: Player,
        actor: Actor,
        tasks: Mapping[str, Sequence[Task]],
        conditions: Sequence[str] = ("full",),
        seed: int = 0,
        transcripts: Callable[[str, Sequence[Episode]], None] | None = None,
    ) -> None:
        self.player, self.actor, self.tasks = player, actor, tasks
        self.conditions = list(conditions)
        self.seed, self.transcripts = seed, transcripts
        self.on_phase: Callable[[str, int, int], None] = lambda phase, done, total: None
        self.counts: Counts = {}
        self.seconds = 0.0

    def run(self, label: str) -> Results:
        """Play everything once; `label` names the transcripts.

        Raises:
            RuntimeError: not one episode of a split could be started.
        """
        started = time.monotonic()
        results: Results = {}
        self.counts = {split: {} for split in self.tasks}
        for condition in self.conditions:
            by_split: dict[str, list[Episode]] = {}
            for split, tasks in self.tasks.items():
                phase = f"evaluate {split}, {condition}"
                own = own_indices([task.id for task in tasks])
                played = self.player.play(
                    [tasks[index] for index in own],
                    self.actor,
                    seed=derive_seed(self.seed, "evaluate", split),
                    prefix=f"{label}/{condition}",
                    condition=condition,
                    progress=lambda done, total, phase=phase: self.on_phase(phase, done, total),  # type: ignore[misc]
                )
                by_split[split] = merged(own, played)
                _check_started(split, by_split[split])
                results.setdefault(split, {})[condition] = evaluate_metrics(by_split[split])
                self.counts[split][condition] = task_counts(by_split[split])
                if self.transcripts is not None:
                    self.transcripts(f"{label}_{split}_{condition}", by_split[split])
            if len(by_split) > 1:
                results.setdefault(ALL_SPLITS, {})[condition] = aggregate_metrics(by_split)
        self.seconds += time.monotonic() - started
        return results


def _check_started(split: str, episodes: Sequence[Episode]) -> None:
    """Refuse to report zeros where nothing was played."""
    is_dead = [e.status is EpisodeStatus.ENV_FAILED and not e.turns for e in episodes]
    if episodes and all(is_dead):
        raise RuntimeError(
            f"split {split!r}: expected episodes to evaluate, not one of {len(episodes)} could be started; "
            f"the first: {episodes[0].message}"
        )


def differences(before: Counts, after: Counts) -> Results:
    """Task-paired differences of two evaluations of the same splits and conditions."""
    changes: Results = {
        split: {name: paired_differences(counts, after[split][name]) for name, counts in conditions.items()}
        for split, conditions in before.items()
    }
    if len(before) > 1:
        changes[ALL_SPLITS] = {
            name: aggregate_differences(*({s: c[name] for s, c in side.items()} for side in (before, after)))
            for name in next(iter(before.values()))
        }
    return changes


def result_rows(update: int, results: Results) -> list[dict[str, Any]]:
    """The rows of `eval.csv` (`EVAL_COLUMNS`) for the results at an update."""
    return [
        {"update": update, "split": split, "condition": condition, "metric": metric, **estimate}
        for split, conditions in results.items()
        for condition, metrics in conditions.items()
        for metric, estimate in metrics.items()
    ]


class EvaluationCallback(Callback):
    """Evaluates before training, every N updates, and at the end.

    Needs a `WeightSync` before it in the list of callbacks. The checkpoint of the round is made before it:
    an evaluation that was cut short, or came after the last checkpoint, is repeated when the run goes on.

    The evaluation tasks never decide anything: the best student is the one with the highest success rate on
    the *validation* tasks, which are held out of training.

    Args:
        final: evaluation before and after training.
        validation: evaluation every `every_num_updates`, or None.
        every_num_updates: checked at the end of every round.
        csv_path: `eval.csv` of the run.
        save_best: called with the module when the validation success rate has risen.
        is_resumed: a checkpoint holds the evaluation before training; sharded runs load it after the start.
        watch: measures the time of all evaluations.
    """

    def __init__(
        self,
        final: Evaluator,
        validation: Evaluator | None,
        every_num_updates: int,
        csv_path: Path | str,
        save_best: Callable[[LightningModule], object],
        is_resumed: bool = False,
        watch: Stopwatch | None = None,
    ) -> None:
        if every_num_updates < 1:
            raise ValueError(f"every_num_updates: expected >= 1, got {every_num_updates}")
        self.final, self.validation, self.every_num_updates = final, validation, every_num_updates
        self.csv, self.save_best = CsvAppender(csv_path, EVAL_COLUMNS), save_best
        self.is_resumed = is_resumed
        self.watch = watch or Stopwatch()
        self.before: Results = {}
        self.after: Results = {}
        self.differences: Results = {}
        self.counts_before: Counts = {}
        self.best_sr, self.last_validated = -1.0, 0

    def on_fit_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        if not self.before and not self.is_resumed:
            self.csv.truncate_after(-1)
            self.before = self._run(self.final, "before")
            self.counts_before = self.final.counts
            self._write(0, self.before)

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        # rows behind the checkpoint that is resumed belong to evaluations that are repeated
        self.csv.truncate_after(self.last_validated)
        if trainer.datamodule.rounds:  # type: ignore[attr-defined]  # else within a round
            self._validate_if_due(trainer, pl_module)

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._validate_if_due(trainer, pl_module)

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self.conclude(trainer, pl_module)

    def conclude(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Evaluate after training, once; a run that goes on behind its last update has no training to end."""
        if self.after:
            return
        self.csv.truncate_after(self.last_validated)
        if trainer.global_step > self.last_validated:
            self._validate(trainer, pl_module)
        self.after = self._run(self.final, "after")
        self.differences = differences(self.counts_before, self.final.counts)
        self._write(trainer.global_step, self.after)

    def _validate_if_due(self, trainer: Trainer, pl_module: LightningModule) -> None:
        if trainer.global_step - self.last_validated >= self.every_num_updates:
            self._validate(trainer, pl_module)

    def _validate(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self.last_validated = trainer.global_step
        if self.validation is None:
            return
        results = self._run(self.validation, f"update_{trainer.global_step:05d}")
        self._write(trainer.global_step, results)
        (by_condition,) = results.values()  # the one validation split under the one condition
        (metrics,) = by_condition.values()
        rate = metrics["sr"]["value"]
        if rate is not None and rate > self.best_sr:
            self.best_sr = rate
            self.save_best(pl_module)

    def _run(self, evaluator: Evaluator, label: str) -> Results:
        with self.watch.running():
            return evaluator.run(label)

    def _write(self, update: int, results: Results) -> None:
        self.csv.append(*result_rows(update, results))

    def state_dict(self) -> dict[str, Any]:
        return {
            "before": self.before,
            "counts_before": self.counts_before,
            "best_sr": self.best_sr,
            "last_validated": self.last_validated,
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.before, self.counts_before = state_dict["before"], state_dict["counts_before"]
        self.best_sr, self.last_validated = state_dict["best_sr"], state_dict["last_validated"]
