"""Hands the student's weights to the engine that plays, after every round."""

from __future__ import annotations

from typing import Any

from lightning import Callback, LightningModule, Trainer

from had.engines.base import Engine
from had.models.sharding import full_state_dict


class WeightSync(Callback):
    """Loads the trained weights into the student's engine when the fit starts and when a round ends.

    Every rank has an engine; the weights of a sharded student are gathered first.

    Must stand before the callbacks that play (evaluation).

    Args:
        engine: the engine that plays for the student.
    """

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    def on_fit_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._sync(pl_module, self._datamodule(trainer).policy_version)

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._sync(pl_module, self._datamodule(trainer).finish_epoch())

    def _sync(self, pl_module: LightningModule, version: int) -> None:
        model: Any = pl_module.model
        self.engine.load_weights(version, full_state_dict(model))

    @staticmethod
    def _datamodule(trainer: Trainer) -> Any:
        return trainer.datamodule  # type: ignore[attr-defined]
