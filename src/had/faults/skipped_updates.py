"""Updates that are skipped because a loss or a gradient is not finite, and when these are too many."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from had.batch import TokenBatch
from had.faults.batch_dump import write_batches
from had.runtime.ranks import gather, rank

MAX_NAMED_WEIGHTS = 5  # that are not finite, in a message; the file has all of them
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Part:
    """A micro-batch as it was worked on, and the sum of each loss term over it.

    Attributes:
        sums: by the term's name, before division by the step's count.
    """

    batch: TokenBatch
    sums: dict[str, float]


class NotFiniteError(FloatingPointError):
    """A step whose loss or gradient is not finite; the same on every rank.

    Attributes:
        metrics: what is known of the step (losses, counts), by column name.
        parts: the micro-batches of this rank.
    """

    def __init__(self, message: str, metrics: Mapping[str, float], parts: Sequence[Part] = ()) -> None:
        super().__init__(message)
        self.metrics = dict(metrics)
        self.parts = parts


class SkippedUpdates:
    """Counts skipped updates and stops the run when too many follow each other.

    A skipped update leaves weights, optimizer state and learning-rate schedule as they are. It has its number
    and counts for `trainer.max_steps`: a run takes the records and the time that it was planned for, ends
    in any case, and its numbers mean the same in all files.

    Args:
        folder: where the last batch goes when the run stops; None writes nothing.
        limit: skipped updates in a row that stop the run; 1 stops at the first.

    Attributes:
        num_skipped: over the run.
        num_in_a_row: since the last update that was taken.
    """

    def __init__(self, folder: Path | str | None = None, limit: int = 3) -> None:
        if limit < 1:
            raise ValueError(
                f"faults.limit: expected >= 1 skipped updates in a row, got {limit}; 1 stops at the first"
            )
        self.folder = None if folder is None else Path(folder)
        self.limit = limit
        self.num_skipped = 0
        self.num_in_a_row = 0

    def taken(self) -> None:
        """An update was taken."""
        self.num_in_a_row = 0

    def skipped(self, update: int, error: NotFiniteError, model: nn.Module) -> None:
        """An update was skipped; must be called on every rank.

        Args:
            update: its number, from 1.
            error: why.
            model: the student, to tell broken weights from a broken batch.

        Raises:
            FloatingPointError: it was one too many; the message names the file with the batch.
        """
        self.num_skipped += 1
        self.num_in_a_row += 1
        _log.warning(
            "update %d is skipped, weights, optimizer and schedule stay as they are: %s (%d in a row, %d "
            "stop the run)",
            *(update, error, self.num_in_a_row, self.limit),
        )
        if self.num_in_a_row < self.limit:
            return
        broken = sorted({name for names in gather(_not_finite(model)) for name in names})
        written = self._dump(update, error, broken)
        raise FloatingPointError(
            f"update {update}: {self.num_in_a_row} updates in a row were skipped "
            f"(faults.limit={self.limit}). The last one: {error}. {_weights_text(broken)}. {written}"
        )

    def _dump(self, update: int, error: NotFiniteError, broken: Sequence[str]) -> str:
        """Write the batch of this rank; where to find it."""
        if self.folder is None or not error.parts:
            return "No folder was given for its batch"
        path = self.folder / f"update_{update:06d}.rank{rank()}"
        facts = {
            "update": update,
            "rank": rank(),
            "fault": str(error),
            "step": _jsonable(error.metrics),
            "weights_not_finite": list(broken),
        }
        notes = [{"term_sums": _jsonable(part.sums)} for part in error.parts]
        write_batches(path, [part.batch for part in error.parts], facts, notes)
        return (
            f"Its batch is in {path}.json (records, losses of each micro-batch) and {path.name}.safetensors "
            "(tokens, spans; had.faults.batch_dump.read_batches reads both)"
        )

    def state_dict(self) -> dict[str, int]:
        """The counts, as plain data."""
        return {"num_skipped": self.num_skipped, "num_in_a_row": self.num_in_a_row}

    def load_state_dict(self, state: Mapping[str, int]) -> None:
        """Take over the counts that `state_dict` returned."""
        self.num_skipped, self.num_in_a_row = state["num_skipped"], state["num_in_a_row"]


def finite_only(metrics: Mapping[str, float]) -> dict[str, float]:
    """The numbers that are numbers; a table leaves the cells of the others empty."""
    return {name: value for name, value in metrics.items() if math.isfinite(value)}


def _not_finite(model: nn.Module) -> list[str]:
    """Names of the parameters that hold NaN or infinity on this rank."""
    return [name for name, value in model.named_parameters() if not _is_finite(value.detach())]


def _is_finite(value: Tensor) -> bool:
    local = value.to_local() if hasattr(value, "to_local") else value
    return bool(torch.isfinite(local).all())


def _weights_text(broken: Sequence[str]) -> str:
    if not broken:
        return (
            "The weights are finite, so look at the batch, at a learning rate that is too high "
            "(optimizer.optimizer.lr) or a precision that is too low (trainer.precision)"
        )
    named = ", ".join(broken[:MAX_NAMED_WEIGHTS]) + (" …" if len(broken) > MAX_NAMED_WEIGHTS else "")
    return (
        f"{len(broken)} weights are not finite themselves ({named}): go on from an earlier checkpoint "
        "(resume=), or look at the file that the student was loaded from"
    )


def _jsonable(numbers: Mapping[str, float]) -> dict[str, float | str]:
    """JSON has neither NaN nor infinity: these become text."""
    return {name: value if math.isfinite(value) else str(value) for name, value in numbers.items()}
