"""Where a number comes from: commit, versions, machine, seed and command of a run."""

from __future__ import annotations

import json
import logging
import os
import platform
import shlex
import subprocess
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch

from had.runtime.files import write_json, write_text

UNKNOWN = "unknown"
PACKAGES = ("torch", "lightning", "transformers", "torchmetrics", "hydra-core", "alfworld", "numpy")
_log = logging.getLogger(__name__)
GIT_TIMEOUT_S = 20  # a status of a large tree on a cold network disk takes seconds


def provenance(seed: int, command: Sequence[str]) -> dict[str, Any]:
    """Everything that is needed to repeat a run, as plain JSON data.

    Args:
        seed: the run's seed.
        command: the program and its arguments (`sys.argv`).

    Returns:
        command, seed, time (UTC), commit and is_dirty (both "unknown" outside a repository), versions,
        platform, cores (that this process may use), threads (of torch), devices (names of the accelerators).
    """
    commit, is_dirty = git_state(Path(__file__).parent)
    versions = {name: package_version(name) for name in PACKAGES}
    return {
        "command": shlex.join(command),
        "seed": seed,
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit,
        "is_dirty": is_dirty,
        "versions": {"python": platform.python_version(), **versions},
        "platform": platform.platform(),
        "cores": num_cores(),
        "threads": torch.get_num_threads(),
        "devices": [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())],
    }


def note_start(folder: Path | str, config: str, facts: Mapping[str, Any], checkpoint: Path | None) -> None:
    """Write `config.yaml` and `provenance.json` of a run; one that goes on adds its start under `resumed`.

    Args:
        folder: the run folder.
        config: the resolved configuration.
        facts: `provenance` and what else is to be kept.
        checkpoint: from which the run goes on, None for the beginning.
    """
    write_text(Path(folder) / "config.yaml", config)
    path = Path(folder) / "provenance.json"
    if checkpoint is None:
        return write_json(path, facts)
    first = _read_provenance(path) or dict(facts)
    again = [*first.get("resumed", []), {**facts, "checkpoint": str(checkpoint)}]
    write_json(path, {**first, "resumed": again})


def _read_provenance(path: Path) -> dict[str, Any] | None:
    """What the first start wrote, None when it is gone; a damaged file is put aside."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except ValueError as error:
        found = error
    if isinstance(found, dict):
        return found
    aside = path.with_suffix(".damaged")
    path.replace(aside)
    _log.warning("%s cannot be read (%s); it is kept as %s", path, found, aside.name)
    return None


def git_state(folder: Path) -> tuple[str, bool | str]:
    """Commit of the repository that tracks `folder`, and whether its tree has changes (untracked files too).

    ("unknown", "unknown") without git, outside a repository, and for a package that is merely installed
    below some other repository (a virtual environment in a project): that commit would say nothing about our
    code.
    """
    if not _git(folder, "ls-files", "."):
        return UNKNOWN, UNKNOWN
    commit, status = _git(folder, "rev-parse", "HEAD"), _git(folder, "status", "--porcelain")
    if commit is None or status is None:
        return UNKNOWN, UNKNOWN
    return commit, bool(status)


def _git(folder: Path, *arguments: str) -> str | None:
    """Output of a git command, None when it fails."""
    command = ["git", "-C", str(folder), *arguments]
    try:
        result = subprocess.run(command, capture_output=True, text=True, timeout=GIT_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return result.stdout.strip() if result.returncode == 0 else None


def package_version(name: str) -> str | None:
    """Version of an installed distribution, None when it is not installed."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def num_cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):  # not on macOS and Windows
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
