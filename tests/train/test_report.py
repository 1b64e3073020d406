"""`src/report.py` on a real run folder, an evaluation and a run that has not ended."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts import run_script


@pytest.fixture(scope="module")
def runs(finished_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a finished run and one that died at its start."""
    folder = tmp_path_factory.mktemp("runs")
    (folder / "a_finished").symlink_to(finished_run)
    (folder / "b_stopped" / ".hydra").mkdir(parents=True)
    (folder / "b_stopped" / ".hydra" / "overrides.yaml").write_text("- seed=7\n")
    return folder


def test_a_glob_of_runs_becomes_tables_figures_and_a_page(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    assert run_script("report.py", f"runs='{runs}/*'", f"hydra.run.dir={tmp_path}") == 0
    assert "2 runs" in capsys.readouterr().out
    names = {path.name for path in tmp_path.iterdir()}
    assert {"comparison.md", "report.html"} <= names
    assert {f"run_01_{name}.png" for name in ("curves", "before_after", "disagreement")} <= names
    page = (tmp_path / "report.html").read_text("utf-8")
    assert page.count("data:image/png;base64,") == 3
    assert "http://" not in page and "https://" not in page  # nothing is fetched from elsewhere
    for words in ("[harness]", "Thought:", "This run has not ended.", "An episode after training"):
        assert words in page


@pytest.mark.parametrize("runs_argument", ["/nowhere/at/all", "'/nowhere/*'"])
def test_no_runs_no_report(runs_argument: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert run_script("report.py", f"runs={runs_argument}", f"hydra.run.dir={tmp_path}") == 2
    assert "/nowhere" in capsys.readouterr().err
