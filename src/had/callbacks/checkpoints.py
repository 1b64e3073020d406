"""A checkpoint after every round, from which the next round starts as if nothing had happened."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lightning import LightningModule, Trainer
from lightning.pytorch.callbacks import ModelCheckpoint

from had.runtime.stopwatch import Stopwatch


class RoundCheckpoint(ModelCheckpoint):
    """Keeps the last checkpoint as `update_<number>.ckpt` and `last.ckpt`.

    With `max_steps`, Lightning takes every checkpoint for one in the middle of an epoch: the first round of a
    resumed run would lose as many updates as the round before it had, and its start would go unnoticed. So
    the round is marked as finished.

    Args:
        folder: `checkpoints/` of the run.
        watch: measures the time of saving.
    """

    def __init__(self, folder: Path | str, watch: Stopwatch | None = None) -> None:
        super().__init__(
            folder,
            filename="update_{step:06d}",
            auto_insert_metric_name=False,
            every_n_epochs=1,
            save_on_train_epoch_end=True,
            save_last=True,
            save_top_k=1,
        )
        self.watch = watch or Stopwatch()

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        with self.watch.running():
            super().on_train_epoch_end(trainer, pl_module)

    def on_save_checkpoint(
        self, trainer: Trainer, pl_module: LightningModule, checkpoint: dict[str, Any]
    ) -> None:
        progress = checkpoint["loops"]["fit_loop"]
        for span in ("total", "current"):
            epochs = progress["epoch_progress"][span]
            epochs["completed"] = epochs["processed"]
        batches = progress["epoch_loop.batch_progress"]["current"]
        progress["epoch_loop.batch_progress"]["current"] = dict.fromkeys(batches, 0)
