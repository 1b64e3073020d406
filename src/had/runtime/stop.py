"""An orderly end on SIGTERM (preemption, a time limit) and Ctrl-C: what is half done is saved first."""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any

SIGNALS = (signal.SIGTERM, signal.SIGINT)
_log = logging.getLogger(__name__)


def exit_code_of(cause: signal.Signals | None) -> int:
    """0 after SIGTERM (a preempted job did nothing wrong), 130 after Ctrl-C, as shells have it."""
    return 130 if cause is signal.SIGINT else 0


class Stopped(BaseException):
    """The run ends because it was asked to; not an `Exception`, so that nothing takes it for a fault."""


class StopRequest:
    """Hears SIGTERM and SIGINT while it is entered.

    While it is held (updates, saving) a signal is only noted, and whoever holds it looks at `is_requested` at
    the next good moment. Otherwise (play, labels, evaluation, which can all be repeated from the last
    checkpoint) it raises `Stopped` at once. A second signal ends the process as if nobody listened.

    Attributes:
        signal: the signal that was received, None before.
        forward: called with the signal's number, to tell processes that only this one knows.
    """

    def __init__(self) -> None:
        self.signal: signal.Signals | None = None
        self.forward: Callable[[int], Any] | None = None
        self._is_held = False
        self._previous: dict[signal.Signals, Any] = {}

    def __enter__(self) -> StopRequest:
        self._previous = {number: signal.getsignal(number) for number in SIGNALS}
        if _can_listen():
            for number in SIGNALS:
                signal.signal(number, self._hear)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if _can_listen():
            for number, handler in self._previous.items():
                signal.signal(number, handler)

    @property
    def is_requested(self) -> bool:
        """Whether the run was asked to end."""
        return self.signal is not None

    def hold(self) -> None:
        """From here on a signal is only noted."""
        self._is_held = True

    def release(self) -> None:
        """From here on a signal ends the run at once; so does one that was noted.

        Raises:
            Stopped: a signal came in the meantime.
        """
        self._is_held = False
        if self.is_requested:
            raise Stopped(self.reason)

    @property
    def reason(self) -> str:
        """Name of the signal."""
        return "a signal to another process" if self.signal is None else self.signal.name

    def _hear(self, number: int, frame: FrameType | None) -> None:
        for each in SIGNALS:  # the next one ends the process
            signal.signal(each, signal.SIG_DFL)
        self.signal = signal.Signals(number)
        if self.forward is not None:
            self.forward(number)
        if not self._is_held:
            raise Stopped(self.reason)
        os.write(2, f"\n{self.reason}: ends as soon as the update is saved; once more: at once\n".encode())


def _can_listen() -> bool:
    return threading.current_thread() is threading.main_thread()
