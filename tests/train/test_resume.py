"""A run that was stopped in the middle of a round and resumed equals the run that was not stopped."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from had.callbacks.round_costs import is_measured
from had.module import DistillationModule
from run_tables import table
from scripts import run_script

LAST_UPDATE = 6
STOPPED_IN = 4  # the rounds end at the updates 2, 5 and 6: the checkpoint is at 2, update 3 is lost


def stop_in_update(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """Let the process die in the middle of an update."""
    step = DistillationModule.training_step

    def training_step(self, batch, batch_idx=0):
        if self.trainer.global_step + 1 == number:
            raise RuntimeError("the power failed")
        return step(self, batch, batch_idx)

    monkeypatch.setattr(DistillationModule, "training_step", training_step)


@pytest.fixture(scope="module", params=["its own folder", "a new folder"])
def resumed_run(request, tiny_run: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    stopped = tmp_path_factory.mktemp("stopped") / "run"
    with pytest.MonkeyPatch.context() as monkeypatch:
        stop_in_update(monkeypatch, STOPPED_IN)
        assert run_script("train.py", *tiny_run, f"hydra.run.dir={stopped}") == 1
    assert [row["update"] for row in table(stopped, "updates.csv")] == ["1", "2", "3"]
    folder = stopped if request.param == "its own folder" else stopped.with_name("continued")
    resume = f"resume={stopped / 'checkpoints' / 'last.ckpt'}"
    assert run_script("train.py", *tiny_run, resume, f"hydra.run.dir={folder}") == 0
    return folder


@pytest.mark.parametrize("name", ["updates.csv", "rounds.csv", "eval.csv"])
def test_tables_are_those_of_the_uninterrupted_run(resumed_run: Path, finished_run: Path, name: str):
    assert table(resumed_run, name) == table(finished_run, name)


def test_final_weights_are_equal_bit_for_bit(resumed_run: Path, finished_run: Path):
    for student in ("last", "best"):
        found, expected = (
            load_file(folder / "student" / student / "model.safetensors")
            for folder in (resumed_run, finished_run)
        )
        assert found.keys() == expected.keys()
        assert all(torch.equal(found[name], expected[name]) for name in expected)


def test_optimizer_and_schedule_end_in_the_same_state(resumed_run: Path, finished_run: Path):
    states = [
        torch.load(folder / "checkpoints" / "last.ckpt", weights_only=True)
        for folder in (resumed_run, finished_run)
    ]
    moments = [state["optimizer_states"][0]["state"] for state in states]
    assert all(
        torch.equal(moments[0][index][name], value)
        for index, entry in moments[1].items()
        for name, value in entry.items()
    )
    assert states[0]["lr_schedulers"] == states[1]["lr_schedulers"]
    assert [state["global_step"] for state in states] == [LAST_UPDATE, LAST_UPDATE]


def test_records_and_their_use_are_equal(resumed_run: Path, finished_run: Path):
    names = [sorted(path.name for path in (f / "records").iterdir()) for f in (resumed_run, finished_run)]
    assert names[0] == names[1]
    for name in names[0]:
        found, expected = (
            sorted((folder / "records" / name).read_text("utf-8").splitlines())
            for folder in (resumed_run, finished_run)
        )
        assert found == expected


def test_the_summary_tells_of_the_whole_run(resumed_run: Path, finished_run: Path):
    found, expected = (
        json.loads((folder / "summary.json").read_text("utf-8")) for folder in (resumed_run, finished_run)
    )
    for key in ("updates", "before", "after", "differences", "teacher", "records", "disagreement"):
        assert found[key] == expected[key]
    counts = [{k: v for k, v in it["costs"].items() if not is_measured(k)} for it in (found, expected)]
    assert counts[0] == counts[1]


def test_the_row_of_the_round_before_the_stop_is_complete(resumed_run: Path):
    with open(resumed_run / "rounds.csv", encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            assert float(row["seconds_train"]) > 0 and float(row["seconds_sync"]) > 0


def test_a_finished_run_has_nothing_to_resume(
    tiny_run: list[str], finished_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    resume = f"resume={finished_run / 'checkpoints' / 'last.ckpt'}"
    assert run_script("train.py", *tiny_run, resume, f"hydra.run.dir={tmp_path}") == 2
    assert "raise trainer.max_steps" in capsys.readouterr().err
