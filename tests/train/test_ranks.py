"""The real program on several processes gives what one process gives: records, tables, weights."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from safetensors.torch import load_file

from run_tables import table
from scripts import SOURCE, run_script

CPU = [
    "trainer.accelerator=cpu",
    "trainer.devices=2",
    "trainer.precision=32-true",
    "placement.compute=float32",
]
PROGRAM = str(SOURCE / "train.py")
LIGHTNING = [sys.executable, PROGRAM]
TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", PROGRAM]
# five tasks: three for one rank, two for the other
TEN_UPDATES = ["trainer.max_steps=10", "data.tasks_per_round=5"]


def run_ranks(launcher: Sequence[str], folder: Path, *overrides: str, **environment: str) -> str:
    """Run the program to its end; what it printed."""
    command = [*launcher, *overrides, *CPU, f"hydra.run.dir={folder}"]
    finished = subprocess.run(
        command, env={**os.environ, **environment}, capture_output=True, text=True, check=False, timeout=600
    )
    assert finished.returncode == 0, finished.stderr[-3000:]
    return finished.stdout


def numbers(folder: Path, name: str) -> list[float]:
    return [float(value) for row in table(folder, name) for value in row.values() if value]


def records(folder: Path) -> dict[str, list[str]]:
    """Every record with the update that used it, by file."""
    return {
        path.name: sorted(path.read_text("utf-8").splitlines()) for path in (folder / "records").iterdir()
    }


def assert_same_play(folder: Path, expected: Path) -> None:
    """Equal records in equal updates, and equal play; a run that went on may have more evaluations."""
    assert records(folder) == records(expected)
    assert table(folder, "rounds.csv") == table(expected, "rounds.csv")
    found = table(folder, "eval.csv")
    assert all(row in found for row in table(expected, "eval.csv"))


def assert_same_run(folder: Path, expected: Path) -> None:
    """Equal play; losses, norms, λ and weights up to float32 rounding."""
    assert_same_play(folder, expected)
    assert table(folder, "eval.csv") == table(expected, "eval.csv")
    assert numbers(folder, "updates.csv") == pytest.approx(numbers(expected, "updates.csv"), rel=2e-5)
    for student in ("last", "best"):
        found, wanted = (
            load_file(side / "student" / student / "model.safetensors") for side in (folder, expected)
        )
        assert found.keys() == wanted.keys()
        assert max((found[name] - wanted[name]).abs().max() for name in wanted) < 2e-6
    found, wanted = (json.loads((side / "summary.json").read_text("utf-8")) for side in (folder, expected))
    for key in ("updates", "before", "after", "differences", "teacher", "disagreement"):
        assert found[key] == wanted[key]


def test_two_sharded_ranks_equal_one_process(tiny_run: list[str], finished_run: Path, tmp_path: Path):
    printed = run_ranks(LIGHTNING, tmp_path / "run", *tiny_run, "trainer=fsdp")
    assert_same_run(tmp_path / "run", finished_run)
    assert printed.count("run folder:") == 1  # one rank speaks


@pytest.fixture(scope="module", params=["had", "opd"])
def ten_updates(
    request: pytest.FixtureRequest, tiny_run: list[str], tmp_path_factory: pytest.TempPathFactory
) -> tuple[list[str], Path]:
    """Overrides of a longer run of a method, and the folder of the same run on one process."""
    overrides = [f"experiment={request.param}_household", *tiny_run, *TEN_UPDATES]
    folder = tmp_path_factory.mktemp(request.param) / "one"
    assert run_script("train.py", *overrides, f"hydra.run.dir={folder}") == 0
    return overrides, folder


@pytest.mark.slow
@pytest.mark.parametrize(("trainer", "launcher"), [("fsdp", LIGHTNING), ("ddp", TORCHRUN)])
def test_ten_updates_equal_one_process(ten_updates, trainer: str, launcher: list[str], tmp_path: Path):
    overrides, expected = ten_updates
    run_ranks(launcher, tmp_path / "run", *overrides, f"trainer={trainer}")
    assert len(table(tmp_path / "run", "updates.csv")) == 10
    assert_same_run(tmp_path / "run", expected)


@pytest.mark.slow
@pytest.mark.parametrize("trainer", ["fsdp", "ddp"])
def test_a_rank_without_tasks_and_without_records_takes_part(
    trainer: str, tiny_run: list[str], tmp_path: Path
):
    overrides = [*tiny_run, "data.tasks_per_round=1", "data.batch_size=1", "evaluation.num_tasks=1"]
    assert run_script("train.py", *overrides, f"hydra.run.dir={tmp_path / 'one'}") == 0
    run_ranks(LIGHTNING, tmp_path / "two", *overrides, f"trainer={trainer}")
    assert_same_run(tmp_path / "two", tmp_path / "one")


@pytest.mark.slow
def test_a_sharded_run_goes_on_from_its_checkpoint(tiny_run: list[str], tmp_path: Path):
    """And on one process too: the checkpoint is whole. The student learns so fast that its play tells."""
    overrides = [*tiny_run, "optimizer.optimizer.lr=0.03"]
    one, start = tmp_path / "one", tmp_path / "start"
    assert run_script("train.py", *overrides, f"hydra.run.dir={one}") == 0
    stopped = ["trainer.max_steps=2", "optimizer.scheduler.num_updates=6"]
    run_ranks(LIGHTNING, start, *overrides, "trainer=fsdp", *stopped)
    checkpoint = f"resume={start / 'checkpoints' / 'last.ckpt'}"
    run_ranks(LIGHTNING, tmp_path / "two", *overrides, "trainer=fsdp", checkpoint)
    assert_same_play(tmp_path / "two", one)
    again = tmp_path / "again"
    assert run_script("train.py", *overrides, checkpoint, f"hydra.run.dir={again}") == 0
    assert_same_play(again, one)


@pytest.mark.slow
def test_slurm_starts_the_processes(tiny_run: list[str], finished_run: Path, tmp_path: Path):
    """What `srun` sets, set by hand: two tasks on one machine; the folder is named after the job."""
    given = {
        "SLURM_JOB_ID": "4711",
        "SLURM_JOB_NAME": "had",
        "SLURM_NTASKS": "2",
        "SLURM_NODELIST": "127.0.0.1",
    }
    given |= {"SLURM_NTASKS_PER_NODE": "2", "SLURM_NODEID": "0", "MASTER_ADDR": "127.0.0.1"}
    command = [*LIGHTNING, *tiny_run, "trainer=ddp", *CPU, f"paths.log_dir={tmp_path}"]
    tasks = [
        subprocess.Popen(
            command, env={**os.environ, **given, "SLURM_PROCID": number, "SLURM_LOCALID": number}
        )
        for number in ("0", "1")
    ]
    assert [task.wait(timeout=600) for task in tasks] == [0, 0]
    (folder,) = (tmp_path / "train").glob("*/slurm_4711.0")
    assert_same_run(folder, finished_run)


@pytest.mark.slow
def test_torchrun_on_two_nodes(tiny_run: list[str], finished_run: Path, tmp_path: Path):
    """Two agents of one process each, on this machine; the folder is named after the id of the launch."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    agent = [sys.executable, "-m", "torch.distributed.run", "--nnodes=2", "--nproc-per-node=1"]
    agent += ["--rdzv-backend=c10d", f"--rdzv-endpoint=127.0.0.1:{port}", "--rdzv-id=4711"]
    options = [*tiny_run, "trainer=ddp", *CPU, "trainer.devices=1", "trainer.num_nodes=2"]
    command = [*agent, PROGRAM, *options, f"paths.log_dir={tmp_path}"]
    nodes = [subprocess.Popen(command) for _ in range(2)]
    assert [node.wait(timeout=600) for node in nodes] == [0, 0]
    (folder,) = (tmp_path / "train").glob("*/torchrun_4711")
    assert_same_run(folder, finished_run)


@pytest.mark.slow
def test_a_sweep_of_runs_with_two_ranks_runs_every_job_once(tiny_run: list[str], tmp_path: Path):
    """The ranks of a job repeat the job's command, not that of the sweep."""
    options = [*tiny_run, "trainer=ddp", *CPU, "trainer.max_steps=1", "method.rho=0.5,1"]
    command = [*LIGHTNING, "-m", *options, f"hydra.sweep.dir={tmp_path}"]
    finished = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert finished.returncode == 0, finished.stderr[-3000:]
    jobs = sorted(path.parent for path in tmp_path.glob("*/summary.json"))
    assert [job.name[0] for job in jobs] == ["0", "1"]
    assert finished.stdout.count("run folder:") == 2
    for job in jobs:
        assert len(table(job, "updates.csv")) == 1


@pytest.mark.slow
@pytest.mark.parametrize(("trainer", "launcher"), [("ddp", LIGHTNING), ("fsdp", TORCHRUN)])
def test_ranks_stop_together_and_go_on(
    trainer: str, launcher: list[str], tiny_run: list[str], finished_run: Path, tmp_path: Path
):
    """SIGTERM to the process that was started, while it updates: Lightning's rank 0, or torchrun's agent."""
    folder = tmp_path / "run"
    command = [*launcher, *tiny_run, *CPU, f"trainer={trainer}", f"hydra.run.dir={folder}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        deadline = time.monotonic() + 300
        updates = folder / "updates.csv"
        while time.monotonic() < deadline and not (updates.exists() and table(folder, "updates.csv")):
            time.sleep(0.02)
        process.terminate()
        printed = process.communicate(timeout=300)[0]
    assert not (folder / "summary.json").exists()
    if launcher is LIGHTNING:  # torchrun's agent itself ends with the signal
        assert process.returncode == 0
    assert printed.count("stopped by") == 1
    assert len(table(folder, "updates.csv")) < 6
    run_ranks(launcher, folder, *tiny_run, f"trainer={trainer}", "resume=auto")
    assert_same_run(folder, finished_run)
