"""A checkpoint after every round, from which the next round starts as if nothing had happened."""

from __future__ import annotations

import random
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from lightning import Callback, LightningModule, Trainer

from had.runtime.checkpoint_files import checkpoint_path, draft_path, point_last, prune, publish
from had.runtime.ranks import gather, is_first
from had.runtime.stop import Stopped, StopRequest
from had.runtime.stopwatch import Stopwatch


class RoundCheckpoint(Callback):
    """Writes `update_<number>.ckpt` at the end of every round, and within one when the run is asked to end.

    `last.ckpt` is a link to the newest. Must stand behind the callbacks that end a round (weight sync,
    tables) and before the evaluation, which can be repeated.

    Lightning must not make checkpoints of its own (`trainer.enable_checkpointing=false`).

    Args:
        folder: `checkpoints/` of the run.
        keep_last: how many of the newest stay; more than one, since the newest may be damaged. -1 keeps all.
        stop: hears signals; None for a run that is not interrupted.
        watch: measures the time of saving.
    """

    def __init__(
        self,
        folder: Path | str,
        keep_last: int = 2,
        stop: StopRequest | None = None,
        watch: Stopwatch | None = None,
    ) -> None:
        if keep_last == 0 or keep_last < -1:
            raise ValueError(f"checkpoints.keep_last: expected >= 1, or -1 for all, got {keep_last}")
        self.folder, self.keep_last = Path(folder), keep_last
        self.stop = stop or StopRequest()
        self.watch = watch or Stopwatch()
        self._random_states: list[dict[str, Any]] = []

    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        # Lightning's own handlers would talk to the other ranks from within a signal, and requeue SLURM jobs
        trainer._signal_connector.register_signal_handlers = lambda: None  # type: ignore[method-assign]
        self.stop.forward = getattr(trainer.strategy.launcher, "kill", None)  # the ranks that it has started

    def on_train_batch_start(
        self, trainer: Trainer, pl_module: LightningModule, batch: Any, batch_idx: int
    ) -> None:
        self.stop.hold()

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        num_left = trainer.datamodule.finish_update()  # type: ignore[attr-defined]
        if num_left:  # else the round ends in order, before the run does
            self._save_and_stop_if_asked(trainer, is_saved=False)

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self.save(trainer)
        self._save_and_stop_if_asked(trainer, is_saved=True)

    def _save_and_stop_if_asked(self, trainer: Trainer, is_saved: bool) -> None:
        """All ranks stop together when one of them was asked to."""
        if any(gather(self.stop.is_requested)):
            if not is_saved:
                self.save(trainer)
            raise Stopped(self.stop.reason)
        self.stop.release()

    def save(self, trainer: Trainer) -> None:
        """Write a checkpoint; must be called on every rank.

        Raises:
            OSError: the disk is full; the older checkpoints are as they were.
        """
        path = checkpoint_path(self.folder, trainer.global_step)
        draft = draft_path(path)
        self._random_states = gather(random_states())
        with self.watch.running():
            if is_first():
                self.folder.mkdir(parents=True, exist_ok=True)
            try:
                trainer.save_checkpoint(draft)
            except (OSError, RuntimeError) as error:
                if not is_first():
                    raise
                raise self._failed(path, draft, error) from error
            if is_first():
                publish(draft, path)
                point_last(path)
                prune(self.folder, self.keep_last)

    def _failed(self, path: Path, draft: Path, error: Exception) -> OSError:
        """The error with what to do; the useless part of the file is removed."""
        if draft.is_dir():
            shutil.rmtree(draft)
        else:
            draft.unlink(missing_ok=True)
        free = shutil.disk_usage(self.folder).free
        return OSError(
            f"checkpoint {path} could not be written: {error}. {free / 1e6:.0f} MB are free on its disk. The "
            "checkpoints before it are intact: make room (checkpoints.keep_last is the number that is kept) "
            "and go on with resume=auto in the same run folder"
        )

    def on_save_checkpoint(
        self, trainer: Trainer, pl_module: LightningModule, checkpoint: dict[str, Any]
    ) -> None:
        """Mark the round as not begun: with its updates done, or with those that are left.

        Lightning would take the checkpoint for one in the middle of an epoch, skip its start and as many
        updates as the round before it had.
        """
        progress = checkpoint["loops"]["fit_loop"]
        epochs, batches = progress["epoch_progress"], progress["epoch_loop.batch_progress"]
        for counts, span in ((epochs, "total"), (epochs, "current"), (batches, "total")):
            counts[span] = dict.fromkeys(counts[span], counts[span]["processed"])
        batches["current"] = dict.fromkeys(batches["current"], 0)

    def state_dict(self) -> dict[str, Any]:
        return {"random": self._random_states}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self._random_states = state_dict["random"]

    def on_train_epoch_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        # with another number of ranks than before there is nothing to go on with
        if len(self._random_states) == trainer.world_size:
            set_random_states(self._random_states[trainer.global_rank])
        self._random_states = []


def random_states() -> dict[str, Any]:
    """The states of the global generators of this process (Python, NumPy, torch, its GPU), as plain data.

    Play, labels and task order do not use them: their seeds are derived from the run's.
    """
    numpy_state = np.random.get_state(legacy=False)
    assert isinstance(numpy_state, dict)
    key = numpy_state["state"]["key"].tolist()
    is_on_gpu = torch.cuda.is_initialized()
    return {
        "python": random.getstate(),
        "numpy": {**numpy_state, "state": {**numpy_state["state"], "key": key}},
        "torch": torch.get_rng_state(),
        "cuda": torch.cuda.get_rng_state() if is_on_gpu else None,
    }


def set_random_states(states: Mapping[str, Any]) -> None:
    """Continue the generators where `random_states` was called."""
    random.setstate(states["python"])
    key = np.asarray(states["numpy"]["state"]["key"], dtype=np.uint32)
    np.random.set_state({**states["numpy"], "state": {**states["numpy"]["state"], "key": key}})
    torch.set_rng_state(states["torch"])
    if states["cuda"] is not None and torch.cuda.is_initialized():
        torch.cuda.set_rng_state(states["cuda"])
