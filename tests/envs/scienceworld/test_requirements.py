"""What is missing is told with the command that installs it, before anything starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from had.envs.scienceworld import requirements, tasks
from had.envs.scienceworld.requirements import check_package, find_java
from had.envs.scienceworld.tasks import ScienceWorldTasks


def _no_java(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(folder))


def test_missing_java_is_told_with_the_install_command(monkeypatch, tmp_path: Path) -> None:
    _no_java(monkeypatch, tmp_path)
    with pytest.raises(FileNotFoundError, match=r"no program `java` in \$PATH.*apt-get install openjdk-17"):
        find_java()


def test_the_tasks_tell_it_too(monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tasks, "check_package", lambda: None)
    _no_java(monkeypatch, tmp_path)
    with pytest.raises(FileNotFoundError, match="needs Java"):
        ScienceWorldTasks().tasks("test")


def test_java_home_comes_before_the_path(monkeypatch, tmp_path: Path) -> None:
    program = tmp_path / "bin" / "java"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert find_java() == program
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "elsewhere"))
    with pytest.raises(FileNotFoundError, match=r"\$JAVA_HOME/bin"):
        find_java()


def test_another_version_of_the_package_is_refused(monkeypatch) -> None:
    monkeypatch.setattr(requirements, "version", lambda name: "1.1.0")
    with pytest.raises(FileNotFoundError, match=r"found 1\.1\.0.*pip install scienceworld==1\.2\.3"):
        check_package()


def test_a_missing_package_is_told(monkeypatch) -> None:
    def missing(name: str) -> str:
        raise requirements.PackageNotFoundError(name)

    monkeypatch.setattr(requirements, "version", missing)
    with pytest.raises(FileNotFoundError, match=r"found none.*pip install scienceworld==1\.2\.3"):
        check_package()
