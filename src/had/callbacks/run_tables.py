"""Writes `updates.csv` and `rounds.csv`: a row per optimizer step and a row per round."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from lightning import Callback, LightningModule, Trainer

from had.callbacks.bottleneck import Bottleneck
from had.callbacks.round_costs import (
    COUNT_COLUMNS,
    RATIO_COLUMNS,
    added,
    cost_numbers,
    round_sums,
)
from had.metrics.disagreement import count_disagreement
from had.metrics.distributed import Disagreement
from had.metrics.functional import evaluate_metrics
from had.records import Episode, Record, Verdict
from had.runtime.files import CsvAppender
from had.runtime.ranks import is_first, num_ranks
from had.runtime.stopwatch import Stopwatch

UPDATE_COLUMNS = (
    "update",
    "round",
    "policy_version",
    "lr",
    "loss_response",
    "loss_preference",
    "grad_norm_response",
    "grad_norm_preference",
    "balance",
    "grad_norm_total",
    "num_records",
    "num_pairs",
    "num_accepted",
    "num_differing",
    "tokens",
    "skipped_updates",  # 1: not finite, so nothing was changed; the cells that were not numbers are empty
    "split_batches",
    "seconds",
)
ROUND_COLUMNS = (
    "round",
    "policy_version",
    "num_episodes",
    "num_failed",
    "num_env_failed",
    "num_records",
    "num_unlabelled",
    "sr",
    "hu",
    "share_valid",
    "share_unparsable",
    "disagreement",
    "teacher_queries",
    "teacher_tokens_generated",
    "teacher_tokens_scored",
    "records_used",
    "records_expired",
    "records_waiting",
    "lag_max",
    *COUNT_COLUMNS,
    *RATIO_COLUMNS,
    "seconds_collect",
    "seconds_label",
    "seconds_train",
    "seconds_evaluate",
    "seconds_sync",
    "seconds_save",
)
FAULT_COUNTS = ("skipped_updates", "split_batches")  # updates that were not finite; micro-batches too large
WATCHED = ("train", "evaluate", "sync", "save")  # phases of a round after its labels
_log = logging.getLogger(__name__)


def make_watches() -> dict[str, Stopwatch]:
    """A watch for each phase that is measured where it happens."""
    return {phase: Stopwatch() for phase in WATCHED}


class RunTables(Callback):
    """CSV always, whatever logger is chosen; the loggers get the row of every round as `round/<column>`.

    A round's row appears when its updates begin and is completed when the next round has been collected, or
    training ends: only then is known what evaluation, weight sync and checkpoint took. The first row
    includes the evaluation before training. A run that dies in between completes the row when it is resumed.

    Args:
        folder: the run folder.
        extra_columns: further columns of `updates.csv`, for terms other than `response` and `preference`.
        watches: what `make_watches` made; the other callbacks let them run.
        bottleneck: says which phase dominates, None for silence.

    Attributes:
        disagreement: of the teacher's two actions by position, over all training states so far.
        totals: sums over all completed rows.
    """

    def __init__(
        self,
        folder: Path | str,
        extra_columns: Sequence[str] = (),
        watches: Mapping[str, Stopwatch] | None = None,
        bottleneck: Bottleneck | None = None,
    ) -> None:
        self.updates = CsvAppender(Path(folder) / "updates.csv", (*UPDATE_COLUMNS, *extra_columns))
        self.rounds = CsvAppender(Path(folder) / "rounds.csv", ROUND_COLUMNS)
        self.watches = make_watches() if watches is None else watches
        self.bottleneck = bottleneck
        self.disagreement = Disagreement(sync_on_compute=False)  # every rank has the records of all
        self.totals: dict[str, float] = {}
        self._open: dict[str, dict[str, Any]] | None = None  # the row that is not complete, and its sums
        self._marks = dict.fromkeys(WATCHED, 0.0)  # the watches when the last row was completed
        self._started = 0.0

    def costs(self) -> dict[str, float | int | None]:
        """Counts, speeds and shares of all completed rounds together."""
        kept = ("num_env_failed", "num_unlabelled", "lag_max", *FAULT_COUNTS)
        return {**{name: self.totals.get(name) for name in kept}, **cost_numbers(self.totals)}

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        # rows behind the checkpoint that is resumed belong to updates that are taken again
        self.updates.truncate_after(trainer.global_step)
        datamodule: Any = trainer.datamodule  # type: ignore[attr-defined]
        num_new = len(datamodule.rounds)  # 0: the run goes on within a round, whose row stays
        self.rounds.truncate_after(datamodule.round_number - num_new, "round")

    def on_train_epoch_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        datamodule: Any = trainer.datamodule  # type: ignore[attr-defined]
        if not datamodule.rounds:
            return
        self._complete_row(trainer.loggers, trainer.global_step)
        usage, counts = datamodule.collector.labeler.teacher.usage, datamodule.buffer.counts()
        num_slots = datamodule.collector.player.pool.num_slots
        for collected in datamodule.rounds:
            sums = round_sums(collected, num_slots, num_ranks())
            row = {
                **dict.fromkeys(ROUND_COLUMNS),
                "round": collected.number,
                "policy_version": collected.policy_version,
                **round_numbers(collected.episodes, collected.records),
                "num_env_failed": sums["num_env_failed"],
                "num_unlabelled": collected.num_unlabelled,
                "teacher_queries": usage.queries,
                "teacher_tokens_generated": usage.tokens_generated,
                "teacher_tokens_scored": usage.tokens_scored,
                **{name: value for name, value in counts.items() if name in ROUND_COLUMNS},
                **cost_numbers(sums),
                "seconds_collect": round(collected.seconds_collect, 3),
                "seconds_label": round(collected.seconds_label, 3),
            }
            self.rounds.append(row)
            self.disagreement.update(collected.records)
            if self._open is not None:  # a round without updates of its own
                self.totals = added(self.totals, self._open["sums"])
            self._open = {"row": row, "sums": sums}
        lags = datamodule.lags
        self._add({"lag": sum(lags), "records_drawn": len(lags), "lag_max": max(lags, default=0)})

    def on_train_batch_start(
        self, trainer: Trainer, pl_module: LightningModule, batch: Any, batch_idx: int
    ) -> None:
        self._started = time.monotonic()

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        seconds = time.monotonic() - self._started
        self.watches["train"].seconds += seconds
        datamodule: Any = trainer.datamodule  # type: ignore[attr-defined]
        metrics: dict[str, float] = pl_module.last_step_metrics  # type: ignore[assignment]
        row = {name: _as_count(name, metrics.get(name)) for name in self.updates.columns}
        row |= {
            "update": trainer.global_step,
            "round": datamodule.round_number,
            "policy_version": datamodule.policy_version,
            "seconds": round(seconds, 3),
        }
        self.updates.append(row)
        faults = {name: int(metrics[name]) for name in FAULT_COUNTS}
        self._add({"tokens_train": metrics["tokens"], **faults})
        datamodule.collector.on_phase("update", batch_idx + 1, int(trainer.num_training_batches))

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        trainer.datamodule.write_dump()  # type: ignore[attr-defined]

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._complete_row(trainer.loggers, trainer.global_step)

    def _add(self, sums: Mapping[str, float]) -> None:
        if self._open is not None:
            self._open["sums"] = added(self._open["sums"], sums)

    def _complete_row(self, loggers: Sequence[Any], update: int) -> None:
        """Put what happened since the last completed row into the row that waits for it."""
        if self._open is None:
            return
        now = {name: self.watches[name].seconds for name in WATCHED}
        seconds = {name: now[name] - self._marks[name] for name in WATCHED}
        self._add({f"seconds_{name}": value for name, value in seconds.items()})
        row, sums = self._open["row"], self._open["sums"]
        row |= {**cost_numbers(sums), "lag_max": sums["lag_max"]}
        row |= {f"seconds_{name}": round(value, 3) for name, value in seconds.items()}
        self.rounds.replace(row, "round")
        self.totals, self._open, self._marks = added(self.totals, sums), None, now
        logged = {f"round/{name}": value for name, value in row.items() if value is not None}
        for logger in loggers:
            logger.log_metrics(logged, step=update)
        phases = {name: sums[f"seconds_{name}"] for name in ("collect", "label", *WATCHED)}
        warning = None if self.bottleneck is None else self.bottleneck.note(phases)
        if warning is not None and is_first():
            _log.warning(warning)

    def state_dict(self) -> dict[str, Any]:
        return {
            "disagreement": self.disagreement.sums_D.tolist(),
            "watches": {name: watch.seconds for name, watch in self.watches.items()},
            "marks": dict(self._marks),
            "totals": dict(self.totals),
            "open": self._open,
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.disagreement.sums_D = torch.tensor(state_dict["disagreement"], dtype=torch.float64)
        for name, seconds in state_dict["watches"].items():
            self.watches[name].seconds = seconds
        self._marks, self.totals = state_dict["marks"], state_dict["totals"]
        self._open = state_dict["open"]


def _as_count(name: str, value: float | None) -> float | None:
    """Numbers of things as integers: the step has them as floats because it adds them over ranks."""
    is_count = name == "tokens" or name.startswith("num_")
    return int(value) if is_count and value is not None and value == int(value) else value


def round_numbers(episodes: Sequence[Episode], records: Sequence[Record]) -> dict[str, Any]:
    """Shares and counts of one round; None where there is nothing to count."""
    metrics, disagreement = evaluate_metrics(episodes), count_disagreement(records)
    verdicts = [record.labels.verdict for record in records if record.labels.verdict is not None]
    failures = [turn.response.failure for episode in episodes for turn in episode.turns]
    compared = int(sum(share.total for share in disagreement.bins))
    return {
        "num_episodes": len(episodes),
        "num_failed": sum(episode.is_failed for episode in episodes),
        "num_records": len(records),
        "sr": metrics["sr"]["value"],
        "hu": metrics["hu"]["value"],
        "share_valid": sum(v is Verdict.VALID for v in verdicts) / len(verdicts) if verdicts else None,
        "share_unparsable": sum(f is not None for f in failures) / len(failures) if failures else None,
        "disagreement": sum(share.hits for share in disagreement.bins) / compared if compared else None,
    }
