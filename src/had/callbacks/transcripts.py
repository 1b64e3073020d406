"""Writes episodes as readable JSON lines: what was shown, what was said, what happened."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lightning import Callback, LightningModule, Trainer

from had.records import Episode, Turn
from had.runtime.ranks import is_first


class Transcripts(Callback):
    """`transcripts/<name>.jsonl`; every round a sample of its episodes.

    Args:
        folder: where the files go.
        episodes_per_round: how many episodes of a round are written.
    """

    def __init__(self, folder: Path | str, episodes_per_round: int = 2) -> None:
        self.folder, self.episodes_per_round = Path(folder), episodes_per_round

    def __call__(self, name: str, episodes: Sequence[Episode]) -> None:
        """Write all given episodes under a name; of several ranks the first one does."""
        if not is_first():
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        lines = [json.dumps(episode_as_plain(episode), ensure_ascii=False) for episode in episodes]
        (self.folder / f"{name}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")

    def on_train_epoch_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        for collected in trainer.datamodule.rounds:  # type: ignore[attr-defined]
            self(f"round_{collected.number:04d}", collected.episodes[: self.episodes_per_round])


def episode_as_plain(episode: Episode) -> dict[str, Any]:
    """The episode for people: no token ids."""
    return {
        "id": episode.id,
        "task": episode.task.id,
        "type": episode.task.type,
        "goal": episode.task.goal,
        "status": episode.status,
        "score": episode.score,
        "message": episode.message,
        "policy_version": episode.policy_version,
        "seed": episode.seed,
        "turns": [_turn(turn) for turn in episode.turns],
    }


def _turn(turn: Turn) -> Mapping[str, Any]:
    return {
        "turn": turn.index + 1,
        "observation": turn.observation,
        "harness": turn.harness_text,
        "commands": turn.commands,
        "reply": turn.reply,
        "action": turn.response.action,
        "failure": turn.response.failure,
        "actor": turn.actor,
        "effect": turn.effect,
        "is_available": turn.is_available,
        "is_new_state": turn.is_new_state,
        "is_blocked": turn.is_blocked,
        "urged": turn.report.is_urged,
        "failures": turn.report.failures,
        "stalled": turn.report.is_stalled,
    }
