import json
import subprocess

import pytest

import had.runtime.provenance as module
from had.runtime.provenance import UNKNOWN, git_state, note_start, package_version, provenance


def git(folder, *arguments):
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    command = ["git", "-C", str(folder), *identity, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def repository(folder):
    folder.mkdir()
    git(folder, "init", "-q")
    (folder / "a.py").write_text("")
    git(folder, "add", "a.py")
    git(folder, "commit", "-q", "-m", "first")
    return folder


def test_provenance_is_json_with_everything():
    facts = json.loads(json.dumps(provenance(seed=3, command=["src/train.py", "paths.data=a b"])))
    assert facts["command"] == "src/train.py 'paths.data=a b'"
    assert facts["seed"] == 3
    assert facts["cores"] >= 1
    assert facts["threads"] >= 1
    assert facts["time"].endswith("+00:00")
    expected = {
        "python",
        "torch",
        "lightning",
        "transformers",
        "torchmetrics",
        "hydra-core",
        "alfworld",
        "numpy",
    }
    assert set(facts["versions"]) == expected
    assert {"commit", "is_dirty", "platform", "devices"} <= set(facts)


def test_commit_and_changes(tmp_path):
    folder = repository(tmp_path / "project")
    commit = git(folder, "rev-parse", "HEAD")
    assert git_state(folder) == (commit, False)
    (folder / "a.py").write_text("changed")
    assert git_state(folder) == (commit, True)


def test_outside_a_repository(tmp_path):
    assert git_state(tmp_path) == (UNKNOWN, UNKNOWN)


def test_a_package_installed_inside_another_repository_is_unknown(tmp_path):
    folder = repository(tmp_path / "project") / "venv" / "had"
    folder.mkdir(parents=True)
    (folder / "records.py").write_text("")
    assert git_state(folder) == (UNKNOWN, UNKNOWN)


def test_a_repository_without_a_commit_is_unknown(tmp_path):
    git(tmp_path, "init", "-q")
    (tmp_path / "a.py").write_text("")
    git(tmp_path, "add", "a.py")
    assert git_state(tmp_path) == (UNKNOWN, UNKNOWN)


def test_without_git(tmp_path, monkeypatch):
    folder = repository(tmp_path / "project")
    monkeypatch.setattr(module, "_git", lambda *_: None)
    assert git_state(folder) == (UNKNOWN, UNKNOWN)
    monkeypatch.undo()
    monkeypatch.setenv("PATH", "")
    assert git_state(folder) == (UNKNOWN, UNKNOWN)


def test_a_missing_package_has_no_version():
    assert package_version("surely-not-installed") is None


def test_a_run_that_goes_on_keeps_its_first_start(tmp_path):
    note_start(tmp_path, "seed: 0", {"seed": 0}, None)
    for update in (1, 2):
        note_start(tmp_path, "seed: 0", {"seed": 0, "time": update}, tmp_path / f"update_{update}.ckpt")
    facts = json.loads((tmp_path / "provenance.json").read_text())
    assert facts["seed"] == 0 and "time" not in facts
    assert [start["time"] for start in facts["resumed"]] == [1, 2]


@pytest.mark.parametrize("text", ["{{{", "", "[1]"])
def test_a_damaged_provenance_is_put_aside(tmp_path, text):
    (tmp_path / "provenance.json").write_text(text)
    note_start(tmp_path, "seed: 0", {"seed": 0}, tmp_path / "update_1.ckpt")
    assert (tmp_path / "provenance.damaged").read_text() == text
    facts = json.loads((tmp_path / "provenance.json").read_text())
    assert facts["resumed"] == [{"seed": 0, "checkpoint": str(tmp_path / "update_1.ckpt")}]
