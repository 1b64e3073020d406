"""Sweeps: one folder a job, a failed job does not stop the others, one table, an exit code that tells."""

from __future__ import annotations

import copy
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import pytest
import slurm_stand_in
from hydra import compose, initialize_config_dir
from method_world import ROOT

from had.reports.comparison import find_jobs, overview_table
from had.runtime import sweep
from had.runtime.files import write_json
from had.runtime.sweep import SweepReport, run_alone
from scripts import run_script

ECHO = """
import sys, pathlib
pathlib.Path(sys.argv[0] + ".out").write_text("\\n".join(sys.argv[1:]))
sys.exit(3)
"""


def test_a_job_runs_alone_with_its_own_overrides(tmp_path):
    script = tmp_path / "echo.py"
    script.write_text(ECHO)
    overrides = ["method.rho=0.25", "sweep=rho", "hydra.mode=MULTIRUN", "hydra.sweep.dir=x"]
    overrides += ["hydra.sweeper.params=y", "hydra.searchpath=[file://z]"]
    overrides += ["hydra/launcher=submitit_slurm", "hydra.launcher.partition=gpu"]
    assert run_alone(script, overrides, tmp_path / "it's") == 3
    given = (tmp_path / "echo.py.out").read_text().split("\n")
    assert given[:3] == ["method.rho=0.25", "sweep=rho", "hydra.searchpath=[file://z]"]
    assert given[3:] == ["hydra.mode=RUN", f"hydra.run.dir='{tmp_path}/it\\'s'"]


STOPPED = """
import os, pathlib, signal, sys, time
def end(number, frame):
    pathlib.Path(sys.argv[0] + ".out").write_text("saved")
    sys.exit(0)
signal.signal(signal.SIGTERM, end)
os.kill(os.getppid(), signal.SIGTERM)
time.sleep(60)
"""


def test_a_sweep_that_is_asked_to_end_lets_its_run_save(tmp_path, capfd):
    script = tmp_path / "stopped.py"
    script.write_text(STOPPED)
    with pytest.raises(SystemExit) as end:
        run_alone(script, [], tmp_path / "sweep" / "0_job")
    assert end.value.code == 0
    assert (tmp_path / "stopped.py.out").read_text() == "saved"
    assert f"hydra.sweep.dir={tmp_path / 'sweep'} resume=auto" in capfd.readouterr().out


def config_of(folder: Path) -> SimpleNamespace:
    hydra = SimpleNamespace(
        runtime=SimpleNamespace(output_dir=str(folder / "1")), sweep=SimpleNamespace(dir=folder)
    )
    return SimpleNamespace(hydra=hydra)


def test_the_report_comes_at_the_end_and_failures_make_the_exit_code(tmp_path, capsys):
    reported: list[Path] = []
    callback, config = SweepReport(reported.append), config_of(tmp_path)
    callback.on_multirun_start(config)
    callback.on_job_end(config, SimpleNamespace(return_value=0))
    callback.on_multirun_end(config)
    assert reported == [tmp_path]
    elsewhere = copy.deepcopy(callback)  # as a launcher sends it to another process
    elsewhere.on_job_end(config, SimpleNamespace(return_value=2))
    with pytest.raises(SystemExit, match="1"):
        callback.on_multirun_end(config)
    assert f"exit code 2: {tmp_path / '1'}" in capsys.readouterr().err
    elsewhere.on_job_end(config, SimpleNamespace(return_value=0))  # tried again, with success
    callback.on_multirun_end(config)


def test_a_single_run_has_no_report(tmp_path):
    callback = SweepReport(lambda folder: pytest.fail("a single run must not be reported as a sweep"))
    callback.on_run_start(config_of(tmp_path))
    callback.on_job_end(config_of(tmp_path), SimpleNamespace(return_value=1))
    callback.on_run_end(config_of(tmp_path))
    assert not (tmp_path / "1").exists()


@pytest.mark.parametrize("suite", ["household", "alfworld_small", "alfworld"])
def test_the_sweep_over_methods_names_experiments(suite):
    with initialize_config_dir(str(ROOT / "configs"), version_base="1.3"):
        config = compose("train", ["sweep=methods", f"suite={suite}"], return_hydra_config=True)
    names = config.hydra.sweeper.params.experiment.split(",")
    assert len(set(names)) == 7
    assert all((ROOT / "configs" / "experiment" / f"{name}.yaml").exists() for name in names)


def test_the_sweep_over_ablations_names_methods():
    with initialize_config_dir(str(ROOT / "configs"), version_base="1.3"):
        config = compose("train", ["sweep=ablations"], return_hydra_config=True)
    names = config.hydra.sweeper.params.method.split(",")
    assert len(set(names)) == 8
    assert all((ROOT / "configs" / "method" / f"{name}.yaml").exists() for name in names)


def test_every_job_has_a_folder_and_one_table_shows_all(tmp_path, monkeypatch, capsys):
    """The real program with Hydra's real sweeper; only what a job does is replaced."""
    jobs: list[tuple[list[str], str]] = []

    def run(script: str, overrides: list[str], folder: str) -> int:
        jobs.append((overrides, folder))
        if "method=opd" in overrides:
            return 2
        summary = {"method": "m", "env": "e", "seed": 0, "updates": 7, "before": {}, "seconds": {}}
        sr = {"value": 0.5, "low": 0.1, "high": 0.9, "count": 2}
        write_json(Path(folder) / "summary.json", {**summary, "after": {"seen": {"full": {"sr": sr}}}})
        return 0

    monkeypatch.setattr(sweep, "run_alone", run)
    code = run_script("train.py", "-m", "method=had,opd,sopd", "seed=1", f"hydra.sweep.dir={tmp_path}")
    printed = capsys.readouterr()
    assert code == 1 and "1 runs of this sweep failed" in printed.err
    assert f"exit code 2: {tmp_path / '1_opd_household_small'}" in printed.err
    assert [Path(folder).name for _, folder in jobs] == [
        "0_had_household_small", "1_opd_household_small", "2_sopd_household_small",
    ]  # fmt: skip
    assert all("seed=1" in overrides and "hydra.mode=MULTIRUN" in overrides for overrides, _ in jobs)
    found = find_jobs(tmp_path)
    assert [job.label for job in found] == ["method=had", "method=opd", "method=sopd"]
    rows = overview_table(found).rows
    assert [row[1] for row in rows] == ["m", "did not end", "m"] and rows[0][4] == "50.0 [10.0, 90.0] n=2"
    assert "did not end" in (tmp_path / "comparison.md").read_text() and "method=sopd" in printed.out


@pytest.mark.slow
def test_a_real_sweep_with_a_job_that_cannot_run(world, tmp_path):
    folder, missing = tmp_path / "sweep", tmp_path / "no_such_teacher"
    left_out = ("teacher.files.path", "trainer.", "paths.output_dir")
    kept = [item for item in world.overrides(tmp_path) if not item.startswith(left_out)]
    teachers = f"teacher.files.path={missing},{world.teacher}"
    script = str(ROOT / "src" / "train.py")
    finished = subprocess.run(
        [sys.executable, script, "-m", *kept, teachers, "trainer.max_steps=1", f"hydra.sweep.dir={folder}"],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parent), "HF_HUB_OFFLINE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert finished.returncode == 1, finished.stderr
    assert "no_such_teacher" in finished.stderr and "1 runs of this sweep failed" in finished.stderr
    failed, trained = find_jobs(folder)
    assert failed.run is None and trained.run is not None and trained.run.updates == 1
    assert trained.label == f"teacher.files.path={world.teacher}"


@pytest.mark.slow
@pytest.mark.skipif(
    find_spec("submitit") is None,
    reason="needs Hydra's submitit launcher: pip install -e '.[slurm]'",
)
@pytest.mark.parametrize("executor", ["local", "slurm"])
def test_a_sweep_through_submitit(world, tmp_path, executor):
    """A job that cannot run and one of two ranks, which Lightning starts here, and `srun` under SLURM."""
    folder, missing = tmp_path / "sweep", tmp_path / "no_such_teacher"
    left_out = ("teacher.files.path", "trainer.", "paths.output_dir")
    kept = [item for item in world.overrides(tmp_path) if not item.startswith(left_out)]
    options = [f"hydra/launcher=submitit_{executor}", "hydra.launcher.timeout_min=20"]
    options += ["hydra.launcher.tasks_per_node=2"] if executor == "slurm" else []
    options += [f"teacher.files.path={missing},{world.teacher}", "trainer.max_steps=1", "trainer=ddp"]
    options += ["trainer.accelerator=cpu", "trainer.devices=2", "trainer.precision=32-true"]
    environment = {"PYTHONPATH": str(Path(__file__).parent), "HF_HUB_OFFLINE": "1"}
    finished = subprocess.run(
        [sys.executable, str(ROOT / "src" / "train.py"), "-m", *kept, *options, f"hydra.sweep.dir={folder}"],
        env={**os.environ, **environment, "PATH": slurm_stand_in.install(tmp_path / "bin")},
        capture_output=True, text=True, check=False, timeout=600,
    )  # fmt: skip
    assert finished.returncode == 1, finished.stderr
    assert "1 runs of this sweep failed" in finished.stderr and "exit code 2" in finished.stderr
    failed, trained = find_jobs(folder)  # each was run once, by whatever number of ranks
    assert failed.run is None and trained.run is not None and trained.run.updates == 1
    logs = "".join(path.read_text("utf-8") for path in (folder / ".submitit").rglob("*_log.*"))
    assert "no_such_teacher" in logs and logs.count("run folder:") == 1
