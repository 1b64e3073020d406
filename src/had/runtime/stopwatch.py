"""Wall time by phase."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass
class Stopwatch:
    """Adds up the time that passes while it runs.

    Attributes:
        seconds: so far.
    """

    seconds: float = 0.0

    @contextmanager
    def running(self) -> Iterator[None]:
        """Measure what happens inside."""
        started = time.monotonic()
        try:
            yield
        finally:
            self.seconds += time.monotonic() - started
