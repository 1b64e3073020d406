"""What cannot run says so before anything heavy is loaded, and says what to do instead."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from scripts import SOURCE, run_script

CANNOT_RUN = 2


def refusal(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """What a run that must not start prints."""
    assert run_script("train.py", *arguments) == CANNOT_RUN
    return capsys.readouterr().err


def test_the_papers_setting_names_everything_that_is_missing(tmp_path: Path):
    command = [sys.executable, "-X", "importtime", str(SOURCE / "train.py"), "experiment=had_alfworld"]
    command += [f"hydra.run.dir={tmp_path / 'run'}", f"env.data_dir={tmp_path / 'none'}"]
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path), "CUDA_VISIBLE_DEVICES": ""}
    result = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    said = "\n".join(line for line in result.stderr.splitlines() if not line.startswith("import time:"))
    assert result.returncode == CANNOT_RUN, said
    for words in (
        "CUDA GPU",
        "Qwen/Qwen3-1.7B",
        "Qwen/Qwen3-8B",
        str(tmp_path / "none" / "json_2.1.1" / "train"),
        "alfworld-download",
        "python src/train.py experiment=had_household",
    ):
        assert words in said
    assert "transformers.models.qwen3.modeling_qwen3" not in result.stderr  # no model was even imported
    assert not (tmp_path / "run" / "updates.csv").exists()


def test_missing_small_models_and_data_are_named(tiny_run: list[str], tmp_path: Path, capsys):
    said = refusal(
        capsys, *tiny_run, f"hydra.run.dir={tmp_path / 'run'}", f"student.files.path={tmp_path / 'nothing'}"
    )
    assert str(tmp_path / "nothing") in said and "experiment=had_household" in said


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("harness.condition=none", "no_state_tracking"),
        ("evaluation.conditions=[full,half]", "'half'"),
        ("evaluation.splits=[train2]", "train2"),
        ("env.train_split=nowhere", "nowhere"),
        ("method.rho=-1", "rho"),
        ("method.beta=0", "beta"),
        ("data.batch_size=0", "batch_size"),
        ("data.updates_per_round=all", "updates_per_round"),
        ("trainer.max_steps=0", "src/evaluate.py"),
        ("prompt.history_turns=-1", "history_turns"),
        ("harness.parts.stall.window=0", "window"),
        ("resume=/nowhere/last.ckpt", "/nowhere/last.ckpt"),
    ],
)
def test_a_bad_value_is_refused_by_name(
    override: str, words: str, tiny_run: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    assert words in refusal(capsys, *tiny_run, f"hydra.run.dir={tmp_path / 'run'}", override)


@pytest.mark.parametrize(
    ("override", "word"),
    [("trainer.max_step=3", "max_step"), ("method=unknown", "unknown"), ("experiment=had_moon", "had_moon")],
)
def test_hydra_refuses_unknown_names(
    override: str, word: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    assert run_script("train.py", override, f"hydra.run.dir={tmp_path / 'run'}") == 1
    assert word in capsys.readouterr().err


def test_two_runs_are_never_mixed_in_one_folder(tiny_run: list[str], finished_run: Path, capsys):
    assert "holds a run already" in refusal(capsys, *tiny_run, f"hydra.run.dir={finished_run}")
