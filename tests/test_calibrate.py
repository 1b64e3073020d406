"""The program `src/calibrate.py`: what it writes, and what it says when it cannot decide."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from had.models.student import save_hf
from had.models.tiny import make_qwen3
from had.pretraining.tokenizer import build_tokenizer

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def untrained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A student that has never won anything."""
    tokenizer = build_tokenizer(["go to the mug"], ["mug 1"], ["Thought:"], vocab_size=300)
    model = make_qwen3(len(tokenizer), hidden=32, layers=1, heads=2, kv_heads=1, head_dim=16, intermediate=32,
                       eos_id=tokenizer.eos_token_id, pad_id=tokenizer.pad_token_id)  # fmt: skip
    return save_hf(model, tokenizer, tmp_path_factory.mktemp("student") / "model")


def calibrate(folder: Path, *overrides: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "src" / "calibrate.py"), f"hydra.run.dir={folder}", *overrides]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)


def test_too_few_successes_end_with_a_clear_message(untrained: Path, tmp_path: Path) -> None:
    result = calibrate(
        tmp_path / "run", f"student.files.path={untrained}", "num_tasks=2", "num_repeats=2",
        "env.max_turns=1", "env.max_reply_tokens=2", "env.max_context_tokens=4096",
    )  # fmt: skip
    assert result.returncode == 2, result.stderr
    assert "expected at least 10 successful episodes, got 0 of 4" in result.stderr
    assert {path.name for path in (tmp_path / "run").iterdir()} >= {"config.yaml", "provenance.json"}
    assert not (tmp_path / "run" / "harness.yaml").exists()


def test_evaluation_tasks_are_never_used(tmp_path: Path) -> None:
    result = calibrate(tmp_path, "env.validation_split=seen")
    assert result.returncode == 2
    assert "expected a split that is held out of training, got 'seen'" in result.stderr
