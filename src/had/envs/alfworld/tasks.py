"""`AlfworldTasks`: the splits of ALFWorld-format games in a folder, with the paper's counts."""

from __future__ import annotations

import logging
import os
import random
from collections.abc import Mapping, Sequence
from pathlib import Path

from had.envs.alfworld.index import GAME_FILE, GameEntry, load_index
from had.records import Task

PAPER_COUNTS = {"train": 3553, "valid_seen": 140, "valid_unseen": 134}
VALIDATION = "validation"
_JSON_FOLDER = "json_2.1.1"
_DOWNLOAD_DIR = "~/.cache/alfworld"  # where `alfworld-download` writes when $ALFWORLD_DATA is not set

_log = logging.getLogger(__name__)


class AlfworldTasks:
    """The `TaskSource` of the real ALFWorld games.

    Args:
        data_dir: the folder that holds `json_2.1.1`; $ALFWORLD_DATA, then `~/.cache/alfworld` when None.
        splits: split -> folder under `json_2.1.1`; the three splits of the paper when None.
        num_validation: games of `train` that are held out as the split `validation`; 0 keeps all in `train`.
        seed: decides which games are held out.
        expect_counts: require the paper's 3,553 / 140 / 134 games.
        cache_dir: where the index is kept; `$XDG_CACHE_HOME/had/alfworld` when None.

    Raises:
        ValueError: num_validation is negative, or there is no split `train` to hold games out of.
    """

    def __init__(
        self,
        data_dir: str | None = None,
        splits: Mapping[str, str] | None = None,
        num_validation: int = 0,
        seed: int = 0,
        expect_counts: bool = True,
        cache_dir: str | None = None,
    ) -> None:
        self._splits = dict(splits) if splits is not None else {split: split for split in PAPER_COUNTS}
        if num_validation < 0 or (num_validation > 0 and "train" not in self._splits):
            raise ValueError(
                "num_validation must be 0 or more, and above 0 only with a split 'train'; "
                f"got {num_validation} and the splits {sorted(self._splits)}"
            )
        data = data_dir or os.environ.get("ALFWORLD_DATA") or _DOWNLOAD_DIR
        self._root = Path(data).expanduser() / _JSON_FOLDER
        self._num_validation = num_validation
        self._seed = seed
        self._expect_counts = expect_counts
        cache_home = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
        self._cache_dir = Path(cache_dir or Path(cache_home) / "had" / "alfworld").expanduser()
        self._loaded: dict[str, tuple[Task, ...]] = {}

    def tasks(self, split: str) -> Sequence[Task]:
        known = [*self._splits, *([VALIDATION] if self._num_validation else [])]
        if split not in known:
            hint = " (it needs num_validation > 0)" if split == VALIDATION else ""
            raise ValueError(f"unknown split {split!r}{hint}; known: {', '.join(known)}")
        if split not in self._loaded:
            self._load("train" if split == VALIDATION else split)
        return self._loaded[split]

    def _load(self, split: str) -> None:
        folder = self._root / self._splits[split]
        if not folder.is_dir():
            raise FileNotFoundError(
                f"no ALFWorld games for the split {split!r}: {folder} is not a folder. Download them with "
                "`alfworld-download` and point $ALFWORLD_DATA (or env.data_dir) at the folder that holds "
                f"{_JSON_FOLDER}, or play the embedded generated games instead: env=household"
            )
        entries = load_index(folder, self._cache_dir)
        expected = PAPER_COUNTS.get(split)
        if self._expect_counts and expected is not None and len(entries) != expected:
            raise ValueError(
                f"split {split!r}: expected {expected} playable games, found {len(entries)} in {folder}. "
                "Complete the data with `alfworld-download`, or set expect_counts=false for a part of them"
            )
        num_annotated = sum(entry.is_annotated for entry in entries)
        _log.info(
            "split %s: %d games; task text: %d human annotations, %d template goals",
            split,
            len(entries),
            num_annotated,
            len(entries) - num_annotated,
        )
        tasks = [self._task(split, folder, entry) for entry in entries]
        self._loaded[split] = tuple(tasks)
        if split == "train" and self._num_validation:
            self._hold_out(tasks)

    def _hold_out(self, tasks: list[Task]) -> None:
        if self._num_validation >= len(tasks):
            raise ValueError(f"num_validation is {self._num_validation}, but 'train' has {len(tasks)} games")
        held_out = set(random.Random(self._seed).sample(range(len(tasks)), self._num_validation))
        self._loaded["train"] = tuple(task for index, task in enumerate(tasks) if index not in held_out)
        self._loaded[VALIDATION] = tuple(
            Task(task.id, VALIDATION, task.type, task.goal, task.source)
            for index, task in enumerate(tasks)
            if index in held_out
        )

    def _task(self, split: str, folder: Path, entry: GameEntry) -> Task:
        return Task(
            id=f"alfworld/{split}/{entry.path}",
            split=split,
            type=entry.type,
            goal=entry.goal,
            source=str(folder / entry.path / GAME_FILE),
        )
