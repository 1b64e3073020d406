"""The program `src/play.py` with lines from a pipe."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PROGRAM = Path(__file__).parents[1] / "src" / "play.py"


def play(folder: Path, lines: str, *overrides: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(PROGRAM), f"hydra.run.dir={folder}", "env.tasks.num_seen=6", *overrides]
    return subprocess.run(command, input=lines, capture_output=True, text=True, check=False)


def test_a_scripted_session(tmp_path: Path) -> None:
    result = play(tmp_path, "1\nopen fridge 77\n:task 2\nlook\n:quit\nnever read\n", "view=both")
    assert result.returncode == 0, result.stderr
    text = result.stdout
    assert "Task 1 of 6: household/small/seen/00000" in text and "Task 2 of 6" in text
    assert text.count("===== with_harness, turn") == text.count("===== without_harness, turn") == 5
    assert "Nothing happens." in text and "Admissible commands:" in text
    assert "never read" not in text


def test_what_cannot_be_played_is_told(tmp_path: Path) -> None:
    result = play(tmp_path, "", "split=nowhere")
    assert result.returncode == 2
    assert "unknown household split 'nowhere'; known: train" in result.stderr
