"""The progress display of a run: the phase, its progress, the updates and the time left."""

from __future__ import annotations

from types import TracebackType

from rich.console import Console
from rich.progress import TaskID

from had.runtime.progress import make_progress

LOG_EVERY_S = 30.0


class PhaseBoard:
    """Two bars: all updates of the run, and the phase at work. Silent without a terminal.

    Args:
        num_updates: optimizer updates of the whole run.
        num_done: those that were taken before this start of it.
        is_shown: False keeps it silent (ranks above 0, tests).
    """

    def __init__(self, num_updates: int, num_done: int = 0, is_shown: bool = True) -> None:
        self._progress = make_progress()
        self._progress.disable = not (is_shown and Console(stderr=True).is_terminal)
        self._updates: TaskID = self._progress.add_task("updates", total=num_updates, completed=num_done)
        self._phase: TaskID = self._progress.add_task("starting", total=None)
        self._finished_updates = num_done

    def __enter__(self) -> PhaseBoard:
        self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._progress.stop()

    def phase(self, name: str, done: int, total: int) -> None:
        """Show that `done` of `total` units of a phase are finished."""
        if done == 0 or self._progress.tasks[self._phase].description != name:
            self._progress.reset(self._phase, description=name, total=total, completed=done)
        else:
            self._progress.update(self._phase, completed=done, total=total)
        if name == "update" and done > 0:
            self._finished_updates += 1
            self._progress.update(self._updates, completed=self._finished_updates)
