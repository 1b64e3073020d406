"""Engines on the trainer's device give their memory back while the student trains."""

from __future__ import annotations

from collections.abc import Sequence

from lightning import Callback, LightningModule, Trainer

from had.engines.base import Engine, SharedEngine, SleepingEngine
from had.runtime.ranks import num_ranks


class SleepWhileTraining(Callback):
    """Lets engines sleep from the first update of a round on; they wake up when they are asked again.

    Whether an engine frees anything is up to its own configuration (`sleeps`).

    Args:
        engines: the engines of the run.
    """

    def __init__(self, engines: Sequence[Engine]) -> None:
        self.engines = engines

    def on_train_epoch_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        for engine in self.engines:
            # of several ranks, none knows whether the others still use a shared server
            is_others_too = isinstance(engine, SharedEngine) and num_ranks() > 1
            if isinstance(engine, SleepingEngine) and not is_others_too:
                engine.sleep()
