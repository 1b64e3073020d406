"""The replay buffer: records wait for a full batch, are used once, and expire when the policy moved on."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

from had.data.record_io import record_from_dict, record_to_dict
from had.records import Record


class ReplayBuffer:
    """Unused records of the last policy versions.

    A record visited by policy version v is usable at the versions v … v + max_policy_lag − 1, at most once.
    Which records share a batch is decided by a seeded shuffle that depends on the records and the version,
    not on the order of arrival.

    Args:
        batch_size: records per optimizer step.
        max_policy_lag: a record expires when the policy version has risen by this much since its visit.
        updates_per_round: `drain` for as many full batches as there are, or the largest number of them per
            round.
        seed: seed of the shuffle.

    Attributes:
        num_added, num_used, num_expired: totals since the start.
    """

    def __init__(
        self,
        batch_size: int = 60,
        max_policy_lag: int = 2,
        updates_per_round: int | str = "drain",
        seed: int = 0,
    ) -> None:
        if batch_size < 1 or max_policy_lag < 1:
            raise ValueError(
                f"expected batch_size >= 1 and max_policy_lag >= 1, got {batch_size} and {max_policy_lag}"
            )
        if updates_per_round != "drain" and not (
            isinstance(updates_per_round, int) and updates_per_round >= 1
        ):
            raise ValueError(
                f"updates_per_round: expected 'drain' or a number >= 1, got {updates_per_round!r}"
            )
        self.batch_size = batch_size
        self.max_policy_lag = max_policy_lag
        self.updates_per_round = updates_per_round
        self.seed = seed
        self.num_added = 0
        self.num_used = 0
        self.num_expired = 0
        self._waiting: dict[str, Record] = {}

    def __len__(self) -> int:
        """Records that wait, expired ones included until the next draw."""
        return len(self._waiting)

    def add(self, records: Sequence[Record]) -> None:
        """Add the records of a round.

        Raises:
            ValueError: a record with the id of a waiting one.
        """
        for record in records:
            if record.id in self._waiting:
                raise ValueError(
                    f"record {record.id} is in the buffer already; record ids must be unique within a run"
                )
            self._waiting[record.id] = record
        self.num_added += len(records)

    def draw(self, version: int, max_batches: int | None = None) -> list[list[Record]]:
        """Full batches for the updates of a round; what is left waits for the next version.

        The oldest records go first, because they expire first.

        Args:
            version: the policy version now.
            max_batches: the updates that the run has left; further batches are not drawn, the first ones are
                the same as without a limit. None for no limit.

        Returns:
            Batches of exactly `batch_size` records; none when there are too few.
        """
        self._expire(version)
        generator = random.Random(f"{self.seed}/{version}")
        candidates = sorted(self._waiting.values(), key=lambda record: record.id)
        generator.shuffle(candidates)
        candidates.sort(key=lambda record: record.policy_version)
        num_batches = len(candidates) // self.batch_size
        if self.updates_per_round != "drain":
            num_batches = min(num_batches, int(self.updates_per_round))
        chosen = candidates[: num_batches * self.batch_size]
        generator.shuffle(chosen)
        if max_batches is not None:
            chosen = chosen[: max_batches * self.batch_size]
        for record in chosen:
            del self._waiting[record.id]
        self.num_used += len(chosen)
        return [chosen[i : i + self.batch_size] for i in range(0, len(chosen), self.batch_size)]

    def _expire(self, version: int) -> None:
        old = [
            id
            for id, record in self._waiting.items()
            if version - record.policy_version >= self.max_policy_lag
        ]
        for id in old:
            del self._waiting[id]
        self.num_expired += len(old)

    def waiting_rounds(self) -> set[int]:
        """The rounds of the records that wait."""
        return {record.round for record in self._waiting.values()}

    def counts(self) -> dict[str, int]:
        """Totals for the logs: added, used, expired, and unused ones that wait."""
        return {
            "records_added": self.num_added,
            "records_used": self.num_used,
            "records_expired": self.num_expired,
            "records_waiting": len(self._waiting),
        }

    def state_dict(self) -> dict[str, Any]:
        """Everything that a resumed run needs, as plain data."""
        return {
            "num_added": self.num_added,
            "num_used": self.num_used,
            "num_expired": self.num_expired,
            "waiting": [record_to_dict(record) for record in self._waiting.values()],
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over the state that `state_dict` returned."""
        self.num_added = state["num_added"]
        self.num_used = state["num_used"]
        self.num_expired = state["num_expired"]
        self._waiting = {record.id: record for record in map(record_from_dict, state["waiting"])}
