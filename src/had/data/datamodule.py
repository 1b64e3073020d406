"""The LightningDataModule: every epoch is one round, collected when its dataloader is asked for."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from lightning import LightningDataModule
from torch.utils.data import DataLoader

from had.batch import TokenBatch
from had.data.collector import Collector, Round
from had.data.layouts import Layout
from had.data.packing import pack
from had.data.record_dump import RecordDump
from had.data.record_io import record_from_dict, record_to_dict
from had.data.replay import ReplayBuffer
from had.records import Record
from had.runtime.ranks import is_first, num_ranks, rank

MAX_BARREN_ROUNDS = 5  # rounds in a row that may end without one full batch before the run stops
_log = logging.getLogger(__name__)


def own_share(batch: Sequence[Record], rank: int, num_ranks: int) -> list[Record]:
    """The records of an update that a rank works on: dealt there and back by length, so that all weigh alike.

    With one rank, the batch as it is.
    """
    if num_ranks == 1:
        return list(batch)
    by_length = sorted(batch, key=lambda record: (-len(record.prompt_ids), record.id))
    places = (rank, 2 * num_ranks - 1 - rank)
    return [record for index, record in enumerate(by_length) if index % (2 * num_ranks) in places]


class RoundDataModule(LightningDataModule):
    """Streams on-policy rounds.

    Needs `reload_dataloaders_every_n_epochs=1` and `use_distributed_sampler=False`.

    One item of the dataloader is one optimizer step: the micro-batches that hold this rank's share of its
    records. Every rank draws the same batches from the same buffer.

    Attributes:
        rounds: the rounds collected for the current epoch; more than one when a round had too few records,
            none when a resumed run goes on within a round.
        undone: the batches of the current epoch whose updates are still to come.
        policy_version: number of finished epochs; the student of round 0 has version 0.
        seconds: wall time spent collecting and labelling, over the run.
        lags: of the records drawn for the current epoch, by how much the policy version had risen since
            their visit.
    """

    def __init__(
        self,
        collector: Collector,
        buffer: ReplayBuffer,
        layouts: Sequence[Layout],
        max_tokens: int,
        pad_id: int,
        dump: RecordDump | None = None,
    ) -> None:
        """Set up the stream.

        Args:
            collector: plays and labels.
            buffer: keeps records until a batch is full.
            layouts: what is scored of a record.
            max_tokens: padded tokens per micro-batch.
            pad_id: padding token.
            dump: writes the records with the update that used them.
        """
        super().__init__()
        self.collector, self.buffer, self.layouts = collector, buffer, layouts
        self.max_tokens, self.pad_id, self.dump = max_tokens, pad_id, dump
        self.policy_version = 0
        self.next_round = 0
        self.num_drawn = 0
        self.rounds: list[Round] = []
        self.undone: list[list[Record]] = []
        self.seconds = {"collect": 0.0, "label": 0.0}
        self.lags: list[int] = []

    def train_dataloader(self) -> DataLoader[list[TokenBatch]]:
        """Collect the next round and pack its updates; first those that a stopped run left.

        When no update is left for the run, there is nothing to collect.
        """
        self.rounds = []
        if not self.undone and self._num_updates_left() != 0:
            self.undone = self._draw()
        steps = [self._pack_own(batch) for batch in self.undone]
        self.collector.on_phase("update", 0, len(steps))
        return DataLoader(steps, batch_size=None, shuffle=False)  # type: ignore[arg-type]

    @property
    def round_number(self) -> int:
        """Of the last round collected; -1 before the first."""
        return self.next_round - 1

    def finish_update(self) -> int:
        """An update of the current epoch was taken; how many are left."""
        del self.undone[0]
        return len(self.undone)

    def finish_epoch(self) -> int:
        """The policy has been updated: raise its version and return it."""
        self.policy_version += 1
        return self.policy_version

    def write_dump(self) -> None:
        """Bring the record files up to date."""
        if self.dump is not None and is_first():
            self.dump.write(keep_rounds=self.buffer.waiting_rounds())

    def _pack_own(self, batch: Sequence[Record]) -> list[TokenBatch]:
        """The micro-batches of this rank's records of an update."""
        own = own_share(batch, rank(), num_ranks())
        if own:
            return pack(own, self.layouts, self.max_tokens, self.pad_id)
        # more ranks than records: this one takes part in the collectives and adds nothing
        shortest = min(batch, key=lambda record: len(record.prompt_ids))
        return [replace(idle, counts={}) for idle in pack([shortest], [], self.max_tokens, self.pad_id)]

    def _draw(self) -> list[list[Record]]:
        for _ in range(MAX_BARREN_ROUNDS):
            self.rounds.append(self._collect())
            batches = self.buffer.draw(self.policy_version, self._num_updates_left())
            if batches:
                self._note_use(batches)
                return batches
        episodes = [episode for item in self.rounds for episode in item.episodes]
        failed = [episode.message for episode in episodes if episode.is_failed]
        last = f" (the last: {failed[-1]})" if failed else ""
        raise RuntimeError(
            f"{MAX_BARREN_ROUNDS} rounds brought no full batch of {self.buffer.batch_size} records: "
            f"{len(episodes)} episodes, {len(failed)} failed{last}, {len(self.buffer)} records wait. "
            "Raise data.tasks_per_round, lower data.batch_size, or look into the failures"
        )

    def _num_updates_left(self) -> int | None:
        """Updates until the run ends; what is not drawn for them is not marked as used. None for no end."""
        if self.trainer is None or self.trainer.max_steps < 0:
            return None
        return self.trainer.max_steps - self.trainer.global_step

    def _collect(self) -> Round:
        collected = self.collector.collect(self.next_round, self.policy_version, self.num_drawn)
        self.next_round += 1
        self.buffer.add(collected.records)
        if self.dump is not None:
            self.dump.add(collected.records)
        self.seconds["collect"] += collected.seconds_collect
        self.seconds["label"] += collected.seconds_label
        return collected

    def _note_use(self, batches: Sequence[Sequence[Record]]) -> None:
        self.lags = [self.policy_version - record.policy_version for batch in batches for record in batch]
        for batch in batches:
            self.num_drawn += 1
            if self.dump is not None:
                self.dump.use(batch, self.num_drawn)

    def state_dict(self) -> dict[str, Any]:
        """Everything that the next round depends on."""
        usage = self.collector.labeler.teacher.usage
        return {
            "policy_version": self.policy_version,
            "next_round": self.next_round,
            "num_drawn": self.num_drawn,
            "seconds": dict(self.seconds),
            "undone": [[record_to_dict(record) for record in batch] for batch in self.undone],
            "buffer": self.buffer.state_dict(),
            "usage": dict(vars(usage)),
            "dump": None if self.dump is None else self.dump.state_dict(),
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over a saved state; runs before the first dataloader of a resumed run."""
        self.policy_version = state_dict["policy_version"]
        self.next_round = state_dict["next_round"]
        self.num_drawn = state_dict["num_drawn"]
        self.seconds = dict(state_dict["seconds"])
        self.undone = [list(map(record_from_dict, batch)) for batch in state_dict["undone"]]
        self.buffer.load_state_dict(state_dict["buffer"])
        for name, value in state_dict["usage"].items():
            setattr(self.collector.labeler.teacher.usage, name, value)
        if self.dump is not None and state_dict["dump"] is not None:
            self.dump.load_state_dict(state_dict["dump"])
