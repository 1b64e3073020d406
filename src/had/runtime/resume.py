"""Going on from a checkpoint: what is checked first, and what a new run folder takes over from the old."""

from __future__ import annotations

import shutil
from pathlib import Path

import torch

CONTINUED = ("updates.csv", "rounds.csv", "eval.csv", "records", "transcripts", "student/best")


def check_checkpoint(path: Path | str, max_steps: int) -> None:
    """Refuse a checkpoint from which there is nothing to go on.

    Args:
        path: a file of a run's `checkpoints/`.
        max_steps: optimizer updates of the whole run, those before the checkpoint included.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: all updates are done.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(
            f"resume: expected a checkpoint file (<run folder>/checkpoints/last.ckpt), found none at {path}"
        )
    # only the small numbers are read: mmap leaves the weights on disk
    done = torch.load(path, map_location="cpu", mmap=True, weights_only=True)["global_step"]
    if 0 <= max_steps <= done:
        raise ValueError(
            f"resume: {path} is at update {done} of trainer.max_steps={max_steps}, nothing is left to do; "
            "raise trainer.max_steps, or evaluate the student (src/evaluate.py)"
        )


def check_unused(folder: Path | str) -> None:
    """Refuse to mix two runs in one folder.

    Raises:
        ValueError: the folder holds the files of a run that went through at least one round.
    """
    found = [name for name in ("summary.json", "checkpoints") if (Path(folder) / name).exists()]
    if found:
        raise ValueError(
            f"hydra.run.dir: {folder} holds a run already ({', '.join(found)}); choose another folder, "
            "remove this one, or go on from its checkpoint with resume=<folder>/checkpoints/last.ckpt"
        )


def take_over(checkpoint: Path | str, folder: Path | str) -> None:
    """Copy tables, records, transcripts and best student of the checkpoint's run where the folder has none.

    Does nothing when the run goes on in its own folder.
    """
    source, target = Path(checkpoint).parent.parent, Path(folder)
    for name in CONTINUED:
        old, new = source / name, target / name
        if not old.exists() or new.exists():
            continue
        new.parent.mkdir(parents=True, exist_ok=True)
        if old.is_dir():
            shutil.copytree(old, new)
        else:
            shutil.copy2(old, new)
