"""SIGTERM and Ctrl-C at any moment: the run says how to go on, and then ends as if never stopped."""

from __future__ import annotations

import os
import shlex
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from had.callbacks import checkpoints
from had.callbacks.evaluation import Evaluator
from had.data.collector import Collector
from had.module import DistillationModule
from had.runtime.checkpoint_files import checkpoints_in
from had.teachers.labeler import Labeler
from run_tables import assert_equal_runs
from scripts import run_script


def signal_in(owner: Any, name: str, occurrence: int, number: signal.Signals = signal.SIGTERM) -> Callable:
    """A patch: the process gets a signal in the middle of a call of a function."""

    def patch(monkeypatch: pytest.MonkeyPatch) -> None:
        original, calls = getattr(owner, name), []

        def wrapped(*args: Any, **kwargs: Any) -> Any:
            calls.append(name)
            if len(calls) == occurrence:
                os.kill(os.getpid(), number)
            return original(*args, **kwargs)

        monkeypatch.setattr(owner, name, wrapped)

    return patch


# The rounds end at the updates 2, 5 and 6; a validation follows each. What the run keeps: the updates done.
MOMENTS = {
    "evaluation before": (signal_in(Evaluator, "run", 1), None),
    "first round": (signal_in(Labeler, "label", 1), None),
    "play": (signal_in(Collector, "round_tasks", 2), 2),
    "labels": (signal_in(Labeler, "label", 3), 5),
    "update": (signal_in(DistillationModule, "training_step", 3), 3),
    "last update of a round": (signal_in(DistillationModule, "training_step", 5), 5),
    "saving": (signal_in(checkpoints, "publish", 2), 5),
    "validation": (signal_in(Evaluator, "run", 3), 5),
    "evaluation after": (signal_in(Evaluator, "run", 5), 6),
    "Ctrl-C": (signal_in(DistillationModule, "training_step", 4, signal.SIGINT), 4),
}


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_stopped_run_goes_on(
    moment: str,
    tiny_run: list[str],
    finished_run: Path,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
):
    patch, num_updates = MOMENTS[moment]
    folder = tmp_path / "run"
    with pytest.MonkeyPatch.context() as monkeypatch:
        patch(monkeypatch)
        code = run_script("train.py", *tiny_run, f"hydra.run.dir={folder}")
    assert code == (130 if moment == "Ctrl-C" else 0)
    assert not (folder / "summary.json").exists()
    found = [int(path.stem.partition("_")[2]) for path in checkpoints_in(folder / "checkpoints")]
    assert (found[0] if found else None) == num_updates

    headline, command = capfd.readouterr().out.strip().splitlines()[-2:]
    assert headline.startswith(f"stopped by SIG{'INT' if moment == 'Ctrl-C' else 'TERM'}")
    program, *arguments = shlex.split(command)
    assert (program, arguments[-1]) == ("python", "resume=auto")
    assert run_script("train.py", *arguments[1:]) == 0
    assert_equal_runs(folder, finished_run)
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL  # the handlers were given back


def test_a_second_signal_ends_the_process(tmp_path: Path):
    """With what a process does that nobody has taught to listen: it dies of the signal."""
    pid = os.fork()
    if pid == 0:
        from had.runtime.stop import StopRequest

        with StopRequest() as stop:
            stop.hold()
            os.kill(os.getpid(), signal.SIGTERM)
            assert stop.is_requested
            os.kill(os.getpid(), signal.SIGTERM)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGTERM
