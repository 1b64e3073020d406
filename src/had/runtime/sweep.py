"""Sweeps: every run in a process of its own, a failed one does not stop the others, one report at the end."""

from __future__ import annotations

import functools
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from had.runtime.files import write_text
from had.runtime.stop import StopRequest, exit_code_of

EXIT_SOME_FAILED = 1
EXIT_CODE_FILE = "exit_code"  # in the folder of a job that failed
_OF_THE_SWEEP = (
    *("hydra.mode=", "hydra.run.dir=", "hydra.sweep.", "hydra.sweeper.", "hydra.launcher."),
    *("hydra/sweeper=", "hydra/launcher="),
)


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

    Raises:
        SystemExit: the sweep was asked to end (SIGTERM, Ctrl-C); the run was given the time to save.
    """
    kept = [override for override in overrides if not override.startswith(_OF_THE_SWEEP)]
    quoted = str(folder).replace("\\", "\\\\").replace("'", "\\'")
    command = [sys.executable, str(script), *kept, "hydra.mode=RUN", f"hydra.run.dir='{quoted}'"]
    with StopRequest() as stop, subprocess.Popen(command) as process:
        stop.hold()
        stop.forward = functools.partial(_tell, process)
        code = process.wait()
    if stop.signal is not None:
        print(
            f"sweep stopped by {stop.reason}; go on with the same command and "
            f"hydra.sweep.dir={Path(folder).parent} resume=auto"
        )
        raise SystemExit(exit_code_of(stop.signal))
    return code


def _tell(process: subprocess.Popen[bytes], number: int) -> None:
    """Pass SIGTERM on; Ctrl-C reaches every process of a terminal by itself."""
    if number == signal.SIGTERM:
        process.send_signal(number)


class SweepReport:
    """Hydra callback: notes which jobs fail, reports on all at the end, and lets the exit code tell.

    Launcher plug-ins run the jobs in other processes, on other machines even: what a job notes reaches the
    end of the sweep through a file in the job's folder.

    Args:
        report: called with the folder of the sweep; prints the table.
    """

    def __init__(self, report: Callable[[Path], None]) -> None:
        self.report = report
        self.is_sweep = False

    def on_multirun_start(self, config: Any, **_: Any) -> None:
        self.is_sweep = True

    def on_job_end(self, config: Any, job_return: Any, **_: Any) -> None:
        """Note the exit code that `run_alone` returned; runs where the job runs."""
        if not self.is_sweep:
            return
        note = Path(config.hydra.runtime.output_dir) / EXIT_CODE_FILE
        if job_return.return_value:
            write_text(note, f"{job_return.return_value}\n")
        else:
            note.unlink(missing_ok=True)  # of an earlier try in the same folder

    def on_multirun_end(self, config: Any, **_: Any) -> None:
        folder = Path(config.hydra.sweep.dir)
        self.report(folder)
        print(f"sweep folder: {folder}")
        if failed := sorted(folder.rglob(EXIT_CODE_FILE)):
            jobs = (f"  - exit code {note.read_text('utf-8').strip()}: {note.parent}" for note in failed)
            print("\n".join([f"{len(failed)} runs of this sweep failed:", *jobs]), file=sys.stderr)
            raise SystemExit(EXIT_SOME_FAILED)

    def on_run_start(self, config: Any, **_: Any) -> None: ...
    def on_run_end(self, config: Any, **_: Any) -> None: ...
    def on_job_start(self, config: Any, **_: Any) -> None: ...
