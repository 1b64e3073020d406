"""Overrides that others build on, each in a run of one update."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from test_repeat import updates

from scripts import run_script

SHORT = ["trainer.max_steps=1", "evaluation.num_validation_tasks=0", "evaluation.splits=[seen]"]
SHORT += ["evaluation.num_tasks=1", "evaluation.conditions=[full]"]


@pytest.fixture
def short_run(tiny_run: list[str], tmp_path: Path):
    """Runs one update with further overrides; returns the run folder."""

    def run(*overrides: str) -> Path:
        folder = tmp_path / "run"
        assert run_script("train.py", *tiny_run, *SHORT, *overrides, f"hydra.run.dir={folder}") == 0
        return folder

    return run


def test_the_textworld_engine_gives_the_numbers_of_the_simulator(short_run, finished_run: Path):
    folder = short_run("env.backend=textworld")
    # the learning rate of an update depends on the length of the run, everything else does not
    found, expected = ({**updates(f)[0], "lr": ""} for f in (folder, finished_run))
    assert found == expected


def test_under_the_condition_off_the_student_trains_without_harness_text(short_run):
    folder = short_run("harness.condition=off")
    lines = (folder / "records" / "round_0000.jsonl").read_text("utf-8").splitlines()
    episodes = [
        json.loads(line)
        for line in (folder / "transcripts" / "round_0000.jsonl").read_text("utf-8").splitlines()
    ]
    assert all(record["prompt_ids"] == record["prompt_ids_without"] for record in map(json.loads, lines))
    assert not any(turn["harness"] for episode in episodes for turn in episode["turns"])


def test_rho_scales_the_preference(short_run, finished_run: Path):
    row, full = updates(short_run("method.rho=0.25"))[0], updates(finished_run)[0]
    assert float(row["balance"]) == pytest.approx(float(full["balance"]) / 2)


def test_records_are_written_on_request_only(short_run):
    assert not (short_run("data.dump_records=false") / "records").exists()


def test_tensorboard_gets_the_numbers_of_the_updates(short_run):
    pytest.importorskip("tensorboard", reason="needs the extra: pip install -e '.[tensorboard]'")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    folder = short_run("logger=tensorboard")
    events = EventAccumulator(str(folder / "tensorboard"))
    events.Reload()
    (scalar,) = events.Scalars("train/loss_response")
    assert scalar.value == pytest.approx(float(updates(folder)[0]["loss_response"]))
