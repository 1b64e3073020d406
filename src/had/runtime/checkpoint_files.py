"""The checkpoint files of a run: published whole or not at all, checked before use, thrown away by age."""

from __future__ import annotations

import os
import re
import shutil
import zipfile
from pathlib import Path

import torch

FOLDER = "checkpoints"
LAST = "last.ckpt"
SHARED_PART = "meta.pt"  # of a checkpoint with a file per rank
_NAME = re.compile(r"update_(\d+)\.ckpt")


def checkpoint_path(folder: Path, update: int) -> Path:
    """Where the checkpoint after an update goes."""
    return folder / f"update_{update:06d}.ckpt"


def draft_path(path: Path) -> Path:
    """Where a checkpoint is written before it is published."""
    return path.with_name(f".{path.name}.part")


def publish(draft: Path, path: Path) -> None:
    """Give a complete draft its name, so that a crash or a power cut leaves the old state or the new one."""
    for file in sorted(draft.rglob("*")) if draft.is_dir() else [draft]:
        _sync(file)
    if path.is_dir():
        shutil.rmtree(path)
    os.replace(draft, path)
    _sync(path.parent)


def point_last(path: Path) -> None:
    """Let `last.ckpt` beside a checkpoint mean it; where links do not exist there is none."""
    draft = draft_path(path.with_name(LAST))
    draft.unlink(missing_ok=True)
    try:
        draft.symlink_to(path.name)
        os.replace(draft, path.with_name(LAST))
    except OSError:
        draft.unlink(missing_ok=True)


def checkpoints_in(folder: Path) -> list[Path]:
    """The published checkpoints of a `checkpoints/`, the newest first."""
    found = [path for path in folder.glob("update_*.ckpt") if _NAME.fullmatch(path.name)]
    return sorted(found, key=lambda path: int(path.stem.partition("_")[2]), reverse=True)


def prune(folder: Path, keep: int) -> None:
    """Remove all but the newest `keep` checkpoints, and drafts that a killed process left.

    Args:
        folder: `checkpoints/` of the run.
        keep: how many stay; -1 for all.
    """
    old = checkpoints_in(folder)[keep:] if keep >= 0 else []
    for path in [*old, *folder.glob(".*.part")]:
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


def damage(path: Path) -> str | None:
    """What is wrong with a checkpoint; None when every byte of it is as it was written.

    Reads the whole file: a checkpoint is a ZIP file with a checksum per entry. Of a folder with a file per
    rank only the shared part is checked.
    """
    if path.is_dir():
        return damage(path / SHARED_PART)
    try:
        with zipfile.ZipFile(path) as archive:
            broken = archive.testzip()
    except (OSError, zipfile.BadZipFile, EOFError) as error:
        return f"{type(error).__name__}: {error}"
    return None if broken is None else f"the checksum of {broken} is wrong"


def update_of(path: Path) -> int:
    """The number of updates after which a checkpoint was taken; the weights stay on the disk."""
    shared = path / SHARED_PART if path.is_dir() else path
    return int(torch.load(shared, map_location="cpu", mmap=True, weights_only=True)["global_step"])


def _sync(path: Path) -> None:
    """Have a file's or a folder's content on the disk, not only in memory."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
