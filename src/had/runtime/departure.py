"""The end of a run of several processes: they leave together, and none fails once the results are saved."""

from __future__ import annotations

import atexit
import logging
import os
import sys

import torch.distributed as dist

from had.runtime.ranks import num_ranks


class Departure:
    """Ends each process of a run in order: wait for the others, close the connections, leave.

    Two facts make it necessary. Lightning closes the process group under NCCL only. And where a model or a
    mesh still holds a group when the interpreter is torn down, the threads of its connections are destroyed
    while they run, which now and then aborts the process ("terminate called without an active exception",
    exit code -6); Lightning's launcher and torchrun then kill the ranks that are still at work.

    So the interpreter is not torn down: a handler that was registered before all others, and thus is called
    after them, flushes the streams and leaves. Make the object before loggers and trainer are built. With one
    process it does nothing.
    """

    def __init__(self) -> None:
        self._is_complete = False
        atexit.register(self._leave)

    def complete(self) -> None:
        """All results are saved; must be called on every rank."""
        if num_ranks() == 1:
            return
        dist.barrier()
        dist.destroy_process_group()
        self._is_complete = True

    def leave(self) -> None:
        """The run ends before its end; this process does not wait for the others."""
        self._is_complete = num_ranks() > 1

    def _leave(self) -> None:
        if not self._is_complete:
            return
        logging.shutdown()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)
