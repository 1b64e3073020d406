"""Writes `updates.csv` and `rounds.csv`: a row per optimizer step and a row per round."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from lightning import Callback, LightningModule, Trainer

from had.metrics.disagreement import count_disagreement
from had.metrics.distributed import Disagreement
from had.metrics.functional import evaluate_metrics
from had.records import Episode, Record, Verdict
from had.runtime.files import CsvAppender

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
    "seconds",
)
ROUND_COLUMNS = (
    "round",
    "policy_version",
    "num_episodes",
    "num_failed",
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
    "seconds_collect",
    "seconds_label",
)


class RunTables(Callback):
    """CSV always, whatever logger is chosen.

    Args:
        folder: the run folder.
        extra_columns: further columns of `updates.csv`, for terms other than `response` and `preference`.

    Attributes:
        seconds: wall time of all updates.
        disagreement: of the teacher's two actions by position, over all training states so far.
    """

    def __init__(self, folder: Path | str, extra_columns: Sequence[str] = ()) -> None:
        self.updates = CsvAppender(Path(folder) / "updates.csv", (*UPDATE_COLUMNS, *extra_columns))
        self.rounds = CsvAppender(Path(folder) / "rounds.csv", ROUND_COLUMNS)
        self.seconds = 0.0
        self.disagreement = Disagreement(sync_on_compute=False)  # every rank has the records of all
        self._started = 0.0

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        # rows behind the checkpoint that is resumed belong to updates that are taken again
        self.updates.truncate_after(trainer.global_step)
        first: int = trainer.datamodule.rounds[0].number  # type: ignore[attr-defined]
        self.rounds.truncate_after(first - 1, "round")

    def on_train_epoch_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        datamodule: Any = trainer.datamodule  # type: ignore[attr-defined]
        usage, counts = datamodule.collector.labeler.teacher.usage, datamodule.buffer.counts()
        for collected in datamodule.rounds:
            row = {
                "round": collected.number,
                "policy_version": collected.policy_version,
                **round_numbers(collected.episodes, collected.records),
                "num_unlabelled": collected.num_unlabelled,
                "teacher_queries": usage.queries,
                "teacher_tokens_generated": usage.tokens_generated,
                "teacher_tokens_scored": usage.tokens_scored,
                **{name: value for name, value in counts.items() if name in ROUND_COLUMNS},
                "seconds_collect": round(collected.seconds_collect, 3),
                "seconds_label": round(collected.seconds_label, 3),
            }
            self.rounds.append(row)
            self.disagreement.update(collected.records)

    def on_train_batch_start(
        self, trainer: Trainer, pl_module: LightningModule, batch: Any, batch_idx: int
    ) -> None:
        self._started = time.monotonic()

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        seconds = time.monotonic() - self._started
        self.seconds += seconds
        datamodule: Any = trainer.datamodule  # type: ignore[attr-defined]
        metrics: dict[str, float] = pl_module.last_step_metrics  # type: ignore[assignment]
        row = {name: _as_count(name, metrics.get(name)) for name in self.updates.columns}
        row |= {
            "update": trainer.global_step,
            "round": datamodule.rounds[-1].number,
            "policy_version": datamodule.policy_version,
            "seconds": round(seconds, 3),
        }
        self.updates.append(row)
        datamodule.collector.on_phase("update", batch_idx + 1, int(trainer.num_training_batches))

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        trainer.datamodule.write_dump()  # type: ignore[attr-defined]

    def state_dict(self) -> dict[str, Any]:
        return {"seconds": self.seconds, "disagreement": self.disagreement.sums_D.tolist()}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.seconds = state_dict["seconds"]
        self.disagreement.sums_D = torch.tensor(state_dict["disagreement"], dtype=torch.float64)


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
