"""Out of memory: how it is recognised, and a step that halves the micro-batches that do not fit."""

from __future__ import annotations

import gc
import logging
from collections.abc import Callable, Sequence
from typing import TypeVar

import torch

from had.batch import TokenBatch

Result = TypeVar("Result")

# What the allocators of the CPU, cuBLAS and cuDNN say in a plain RuntimeError.
_MESSAGES = ("can't allocate memory", "not enough memory", "STATUS_ALLOC_FAILED")
_log = logging.getLogger(__name__)


class DoesNotFitError(RuntimeError):
    """A micro-batch ran out of memory.

    Attributes:
        index: its place in the step.
    """

    def __init__(self, index: int, message: str) -> None:
        super().__init__(message)
        self.index = index


def is_out_of_memory(error: BaseException) -> bool:
    """True for the errors of the allocators."""
    if isinstance(error, (torch.OutOfMemoryError, MemoryError)):
        return True
    return isinstance(error, RuntimeError) and any(text in str(error) for text in _MESSAGES)


def release_memory() -> None:
    """Give back what nobody holds any more."""
    gc.collect()  # the frames of a failed backward pass hold each other
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def halve_what_does_not_fit(
    batches: Sequence[TokenBatch], work: Callable[[Sequence[TokenBatch]], Result]
) -> Result:
    """Work on all micro-batches of a step, again from the start where one of them did not fit into memory.

    A micro-batch that fails inside a backward pass has left a part of its gradient behind, so the step is
    begun anew with that micro-batch halved, and with it all later ones of its size. A half that does not
    fit either ends the run.

    Args:
        batches: the micro-batches of the step.
        work: what is done; must begin anew at each call.

    Raises:
        MemoryError: a half, or a micro-batch of one row, does not fit.
    """
    parts, halves = list(batches), set[int]()
    while True:
        try:
            return work(parts)
        except DoesNotFitError as error:
            # Only text leaves this block: the exception holds the tensors of the failed pass.
            index, message = error.index, str(error)
        release_memory()
        parts, halves = _halved(parts, halves, index, message)


def run_once(batches: Sequence[TokenBatch], work: Callable[[Sequence[TokenBatch]], Result]) -> Result:
    """The work of a rank that cannot begin anew: the others are in the middle of the collectives of its step.

    Raises:
        MemoryError: a micro-batch does not fit.
    """
    try:
        return work(batches)
    except DoesNotFitError as error:
        size, message = batches[min(error.index, len(batches) - 1)].size, str(error)
    raise MemoryError(
        f"out of memory in a micro-batch of {size} padded tokens. The ranks of a sharded model work in "
        f"step, so one of them cannot begin anew: lower data.max_tokens below {size} (plan=true says what "
        f"fits), or set placement.activation_checkpointing=true ({message})"
    )


def _halved(
    parts: Sequence[TokenBatch], halves: set[int], index: int, message: str
) -> tuple[list[TokenBatch], set[int]]:
    """The micro-batches after a failure, and which of them are halves."""
    failed = parts[index]
    if index in halves or failed.num_rows == 1:
        raise MemoryError(_last_word(failed, is_half=index in halves, message=message))
    new: list[TokenBatch] = []
    new_halves: set[int] = set()
    for place, batch in enumerate(parts):
        can_halve = place not in halves and batch.num_rows > 1
        if place >= index and can_halve and batch.size >= failed.size:
            new_halves |= {len(new), len(new) + 1}
            new += batch.halves()
        else:
            new_halves |= {len(new)} if place in halves else set()
            new.append(batch)
    _log.warning(
        "out of memory in micro-batch %d of %d (%d rows, %d padded tokens): the step begins anew with %d "
        "of its micro-batches halved, which gives the same gradient and takes longer. Lower data.max_tokens "
        "below %d; plan=true says what fits (%s)",
        *(index + 1, len(parts), failed.num_rows, failed.size, len(new) - len(parts), failed.size, message),
    )
    return new, new_halves


def _last_word(batch: TokenBatch, is_half: bool, message: str) -> str:
    shape = f"{batch.num_rows} rows of {batch.tokens_BT.shape[1]} tokens"
    if batch.num_rows > 1:
        return (
            f"out of memory in one half of a micro-batch ({shape}): expected a half to fit, so "
            f"data.max_tokens is far too large; lower it to {batch.size // 2} or less, or ask plan=true what "
            f"fits ({message})"
        )
    return (
        f"out of memory in {'one half of ' if is_half else ''}a micro-batch of one record "
        f"({batch.tokens_BT.shape[1]} tokens, record {', '.join(batch.own_record_ids()) or 'unknown'}), "
        "which cannot be split, so data.max_tokens does not help. Shorten the prompt (prompt.history_turns) "
        "or the replies (env.max_reply_tokens), set placement.activation_checkpointing=true, or shard the "
        f"student (trainer=fsdp) ({message})"
    )
