"""`src/evaluate.py` plays what the end of a run played, and any other condition."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from transformers import AutoTokenizer

from scripts import run_script


@pytest.fixture
def settings(tiny_run: list[str]) -> list[str]:
    """The overrides of the tiny run that evaluation knows."""
    return [item for item in tiny_run if item.startswith(("env.", "prompt", "evaluation.num_tasks"))]


def results(folder: Path) -> dict:
    return json.loads((folder / "summary.json").read_text("utf-8"))["after"]


def test_a_run_folder_gives_the_results_of_its_end(settings: list[str], finished_run: Path, tmp_path: Path):
    folder = tmp_path / "evaluation"
    overrides = [f"checkpoint={finished_run}", "evaluation.conditions=[full,off]", f"hydra.run.dir={folder}"]
    assert run_script("evaluate.py", *settings, *overrides) == 0
    assert results(folder) == results(finished_run)
    assert {path.name for path in folder.iterdir()} >= {
        "config.yaml", "provenance.json", "summary.json", "eval.csv", "transcripts",
    }  # fmt: skip


def test_one_condition_of_a_student_folder(
    settings: list[str], finished_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    folder = tmp_path / "evaluation"
    overrides = [f"checkpoint={finished_run / 'student' / 'best'}", "harness.condition=hard_block"]
    assert run_script("evaluate.py", *settings, *overrides, f"hydra.run.dir={folder}") == 0
    assert all(set(conditions) == {"hard_block"} for conditions in results(folder).values())
    printed = capsys.readouterr().out
    assert "prevention" in printed and "hu_stall" not in printed and str(folder) in printed


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("checkpoint=packaged:nobody", "packaged weights named 'nobody'"),
        ("harness.condition=half", "'half'"),
        ("evaluation.splits=[elsewhere]", "elsewhere"),
    ],
)
def test_what_cannot_be_evaluated_is_named(
    override: str, words: str, settings: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    assert run_script("evaluate.py", *settings, override, f"hydra.run.dir={tmp_path / 'evaluation'}") == 2
    assert words in capsys.readouterr().err


def test_a_folder_without_a_model_is_no_checkpoint(
    settings: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    overrides = [f"checkpoint={tmp_path}", f"hydra.run.dir={tmp_path / 'evaluation'}"]
    assert run_script("evaluate.py", *settings, *overrides) == 2
    assert "student/last" in capsys.readouterr().err


def test_the_saved_tokenizer_is_the_students(tiny_run: list[str], finished_run: Path):
    given = AutoTokenizer.from_pretrained(tiny_run[0].partition("=")[2])
    saved = AutoTokenizer.from_pretrained(finished_run / "student" / "last")
    assert saved.get_vocab() == given.get_vocab()
    assert saved.chat_template == given.chat_template
