"""`HouseholdTasks`: the generated games as a `TaskSource`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress, TimeRemainingColumn

from had.envs.household.cache import SHARD_SIZE, GameCache, default_root
from had.envs.household.preset import Preset, find_preset
from had.records import Task


class HouseholdTasks:
    """Household games in ALFWorld's own format, made from its floor plans on first use and kept on disk.

    The task types take turns, so every prefix of a split is balanced. `seen` and `validation` are other games
    in the rooms of `train`; `unseen` has floor plans that no other split uses. A longer split begins with the
    same games.

    Args:
        preset: `small` (6-10 places), `full` (all places of the floor plan) or a `Preset`.
        num_train, num_validation, num_seen, num_unseen: games by split.
        seed: another seed gives other games.
        cache_dir: where games are kept; by default `$HAD_CACHE/household` or `~/.cache/had/household`.
    """

    def __init__(
        self,
        preset: str | Preset = "small",
        num_train: int = 1000,
        num_validation: int = 100,
        num_seen: int = 100,
        num_unseen: int = 100,
        seed: int = 0,
        cache_dir: str | Path | None = None,
    ) -> None:
        self._counts = {
            "train": num_train,
            "validation": num_validation,
            "seen": num_seen,
            "unseen": num_unseen,
        }
        for split, count in self._counts.items():
            if not 0 <= count <= 99_999:
                raise ValueError(f"num_{split} must be between 0 and 99999, got {count}")
        root = Path(cache_dir).expanduser() if cache_dir else default_root()
        self._cache = GameCache(root, find_preset(preset), seed)
        self._tasks: dict[str, tuple[Task, ...]] = {}

    def tasks(self, split: str) -> Sequence[Task]:
        """All tasks of a split; missing games are made, with a progress bar (about 3 ms a game).

        Raises:
            ValueError: unknown split.
        """
        if split not in self._counts:
            raise ValueError(f"unknown household split {split!r}; known: {', '.join(self._counts)}")
        if split not in self._tasks:
            self._tasks[split] = self._load(split, self._counts[split])
        return self._tasks[split]

    def _load(self, split: str, count: int) -> tuple[Task, ...]:
        shards = [self._cache.read_shard(split, number) for number in range(-(-count // SHARD_SIZE))]
        missing = [number for number, shard in enumerate(shards) if shard is None]
        if missing:
            columns = (*Progress.get_default_columns()[:2], MofNCompleteColumn(), TimeRemainingColumn())
            with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
                bar = progress.add_task(f"making {split} games", total=len(missing) * SHARD_SIZE)
                for number in missing:
                    shards[number] = self._cache.make_shard(split, number)
                    progress.advance(bar, SHARD_SIZE)
        return tuple(task for shard in shards for task in shard or ())[:count]
