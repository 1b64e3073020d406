"""Runs that are killed without a warning, find no room on the disk, or find their checkpoints damaged."""

from __future__ import annotations

import os
import random
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from had.callbacks.checkpoints import RoundCheckpoint
from had.runtime.checkpoint_files import checkpoints_in
from run_tables import assert_equal_runs
from scripts import SOURCE, run_script

PROGRAM = [sys.executable, str(SOURCE / "train.py")]
SECONDS_TO_THE_END = 14.0  # about what a run takes; kills are spread over it


def kill_once(arguments: list[str], after_s: float) -> bool:
    """Start the run and kill it and its group after a time; whether it had not ended by itself."""
    with subprocess.Popen(
        [*PROGRAM, *arguments], start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        try:
            assert process.wait(timeout=after_s) == 0
        except subprocess.TimeoutExpired:
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
            return True
        finally:
            with_group_gone(process.pid)
    return False


def with_group_gone(group: int) -> None:
    """The workers of a killed run end by themselves: none may be left."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return
        time.sleep(0.1)
    os.killpg(group, signal.SIGKILL)
    raise AssertionError("workers outlived the run that was killed")


@pytest.mark.parametrize("num_kills", [2, pytest.param(20, marks=pytest.mark.slow)])
def test_killed_at_random_moments(num_kills: int, tiny_run: list[str], finished_run: Path, tmp_path: Path):
    """The moments are seeded, but what a run does at a moment is up to the machine."""
    generator, num_killed = random.Random(num_kills), 0
    for _ in range(20 * num_kills):
        folder = tmp_path / f"run_{num_killed // 5}"  # after some kills a run is finished; then another one
        arguments = [*tiny_run, f"hydra.run.dir={folder}", "resume=auto"]
        num_killed += kill_once(arguments, generator.uniform(3.0, SECONDS_TO_THE_END))
        if num_killed == num_kills:
            break
    assert num_killed == num_kills
    for folder in sorted(tmp_path.glob("run_*")):
        arguments = [*tiny_run, f"hydra.run.dir={folder}", "resume=auto"]
        assert run_script("train.py", *arguments) == 0
        assert_equal_runs(folder, finished_run)


def test_a_full_disk_while_saving(
    tiny_run: list[str], finished_run: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
):
    """No file of this process may grow beyond a size that a checkpoint needs: the second one fails."""
    folder = tmp_path / "run"
    limits, save = resource.getrlimit(resource.RLIMIT_FSIZE), RoundCheckpoint.save

    def save_on_a_full_disk(self, trainer):
        if checkpoints_in(self.folder):
            resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, limits[1]))
        save(self, trainer)

    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(RoundCheckpoint, "save", save_on_a_full_disk)
        try:
            assert run_script("train.py", *tiny_run, f"hydra.run.dir={folder}") == 1
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    printed = capfd.readouterr().err
    for part in (
        "update_000005.ckpt could not be written",
        "MB are free",
        "resume=auto in the same run folder",
    ):
        assert part in printed
    assert sorted(path.name for path in (folder / "checkpoints").iterdir()) == [
        "last.ckpt",
        "update_000002.ckpt",
    ]
    assert run_script("train.py", *tiny_run, f"hydra.run.dir={folder}", "resume=auto") == 0
    assert_equal_runs(folder, finished_run)


def test_a_damaged_checkpoint_costs_a_round(
    tiny_run: list[str], finished_run: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
):
    """The newest one is cut: the run goes on from the one before, to the same end."""
    folder = tmp_path / "run"
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr("had.callbacks.evaluation.EvaluationCallback.conclude", _die)
        assert run_script("train.py", *tiny_run, f"hydra.run.dir={folder}") == 1
    newest, older = checkpoints_in(folder / "checkpoints")
    newest.write_bytes(newest.read_bytes()[:-1000])
    assert run_script("train.py", *tiny_run, f"hydra.run.dir={folder}", f"resume={newest}") == 2
    assert f"intact beside it: {older.name}" in capfd.readouterr().err
    assert run_script("train.py", *tiny_run, f"hydra.run.dir={folder}", "resume=auto") == 0
    assert "update_000006.ckpt is damaged" in capfd.readouterr().out
    assert_equal_runs(folder, finished_run)


def _die(*_: object) -> None:
    raise RuntimeError("the power failed")


def test_a_folder_is_not_given_to_another_experiment(
    tiny_run: list[str], finished_run: Path, capfd: pytest.CaptureFixture[str]
):
    files = [
        path for path in finished_run.rglob("*") if ".hydra" not in path.parts and path.name != "train.log"
    ]
    before = {path: path.stat().st_mtime_ns for path in files}
    for resume in ([], ["resume=auto"]):
        overrides = [*tiny_run, f"hydra.run.dir={finished_run}", "method.rho=0.25", *resume]
        assert run_script("train.py", *overrides) == 2
    printed = capfd.readouterr().err
    assert "holds a run already" in printed
    assert "method.rho" in printed
    assert {path: path.stat().st_mtime_ns for path in before} == before


def test_a_finished_run_says_so(tiny_run: list[str], finished_run: Path, capfd: pytest.CaptureFixture[str]):
    summary = (finished_run / "summary.json").read_bytes()
    assert run_script("train.py", *tiny_run, f"hydra.run.dir={finished_run}", "resume=auto") == 0
    assert "holds this run, finished; nothing is left to do" in capfd.readouterr().out
    assert (finished_run / "summary.json").read_bytes() == summary
