"""Sweeps: one folder a job, a failed job does not stop the others, one table, an exit code that tells."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from hydra import compose, initialize_config_dir
from method_world import ROOT

from had.reports.comparison import find_jobs, overview_table
from had.runtime.sweep import SweepReport, run_alone

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
    assert run_alone(script, overrides, tmp_path / "it's") == 3
    given = (tmp_path / "echo.py.out").read_text().split("\n")
    assert given[:3] == ["method.rho=0.25", "sweep=rho", "hydra.searchpath=[file://z]"]
    assert given[3:] == ["hydra.mode=RUN", f"hydra.run.dir='{tmp_path}/it\\'s'"]


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
    callback.on_job_end(config, SimpleNamespace(return_value=2))
    with pytest.raises(SystemExit, match="1"):
        callback.on_multirun_end(config)
    assert f"exit code 2: {tmp_path / '1'}" in capsys.readouterr().err


def test_a_single_run_has_no_report(tmp_path):
    callback = SweepReport(lambda folder: pytest.fail("a single run must not be reported as a sweep"))
    callback.on_run_start(config_of(tmp_path))
    callback.on_job_end(config_of(tmp_path), SimpleNamespace(return_value=None))
    callback.on_run_end(config_of(tmp_path))
    assert callback.failed == []


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


def test_a_real_sweep_with_a_job_that_cannot_run(world, tmp_path):
    folder = tmp_path / "sweep"
    overrides = [item for item in world.overrides(tmp_path) if "output_dir" not in item]
    overrides = [item for item in overrides if not item.startswith(("teacher.files.path", "trainer."))]
    missing = tmp_path / "no_such_teacher"
    finished = subprocess.run(
        [
            sys.executable,
            str(ROOT / "src" / "train.py"),
            "-m",
            *overrides,
            f"teacher.files.path={missing},{world.teacher}",
            "trainer.max_steps=1",
            f"hydra.sweep.dir={folder}",
        ],
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
    table = overview_table([failed, trained])
    assert table.rows[0][1] == "did not end" and table.rows[1][1:4] == ("had", "household_small", "1")
    assert "method" in (folder / "comparison.md").read_text()
    assert "did not end" in finished.stdout
