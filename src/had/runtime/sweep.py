"""Sweeps: every run in a process of its own, a failed one does not stop the others, one report at the end."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

EXIT_SOME_FAILED = 1
_OF_THE_SWEEP = ("hydra.mode=", "hydra.run.dir=", "hydra.sweep.", "hydra.sweeper.")


def run_alone(script: Path | str, overrides: Sequence[str], folder: Path | str) -> int:
    """Run one job of a sweep as if its overrides had been typed, and wait for it.

    A process of its own: memory is given back, a run that cannot start or is killed ends alone, and the ranks
    that Lightning starts repeat the command of the run, not that of the whole sweep.

    Args:
        script: the entry point.
        overrides: of the job; those that describe the sweep are left out.
        folder: the run folder.

    Returns:
        The exit code, 0 for success.
    """
    kept = [override for override in overrides if not override.startswith(_OF_THE_SWEEP)]
    quoted = str(folder).replace("\\", "\\\\").replace("'", "\\'")
    command = [sys.executable, str(script), *kept, "hydra.mode=RUN", f"hydra.run.dir='{quoted}'"]
    return subprocess.run(command, check=False).returncode


class SweepReport:
    """Hydra callback: notes which jobs fail, reports on all at the end, and lets the exit code tell.

    Args:
        report: called with the folder of the sweep; prints the table.
    """

    def __init__(self, report: Callable[[Path], None]) -> None:
        self.report = report
        self.is_sweep = False
        self.failed: list[str] = []

    def on_multirun_start(self, config: Any, **_: Any) -> None:
        self.is_sweep, self.failed = True, []

    def on_job_end(self, config: Any, job_return: Any, **_: Any) -> None:
        """Note the exit code that `run_alone` returned."""
        if self.is_sweep and job_return.return_value:
            folder = config.hydra.runtime.output_dir
            self.failed.append(f"exit code {job_return.return_value}: {folder}")

    def on_multirun_end(self, config: Any, **_: Any) -> None:
        folder = Path(config.hydra.sweep.dir)
        self.report(folder)
        print(f"sweep folder: {folder}")
        if self.failed:
            lines = [f"{len(self.failed)} runs of this sweep failed:", *(f"  - {job}" for job in self.failed)]
            print("\n".join(lines), file=sys.stderr)
            raise SystemExit(EXIT_SOME_FAILED)

    def on_run_start(self, config: Any, **_: Any) -> None: ...
    def on_run_end(self, config: Any, **_: Any) -> None: ...
    def on_job_start(self, config: Any, **_: Any) -> None: ...
