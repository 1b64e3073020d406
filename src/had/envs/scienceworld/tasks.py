"""`ScienceWorldTasks`: the variations of the 30 tasks by split; needs no running simulator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from had.envs.scienceworld.requirements import check_package, find_java
from had.records import Task

# Variations for training, development and test of scienceworld 1.2.3, as its simulator tells them. They are
# numbered on from 0: the training variations of boil are 0 to 13, its test variations 21 to 29.
SPLIT_SIZES = {
    "boil": (14, 7, 9),
    "melt": (14, 7, 9),
    "freeze": (14, 7, 9),
    "change-the-state-of-matter-of": (14, 7, 9),
    "use-thermometer": (270, 135, 135),
    "measure-melting-point-known-substance": (218, 109, 109),
    "measure-melting-point-unknown-substance": (150, 75, 75),
    "power-component": (10, 5, 5),
    "power-component-renewable-vs-nonrenewable-energy": (10, 5, 5),
    "test-conductivity": (450, 225, 225),
    "test-conductivity-of-unknown-substances": (300, 150, 150),
    "find-living-thing": (150, 75, 75),
    "find-non-living-thing": (150, 75, 75),
    "find-plant": (150, 75, 75),
    "find-animal": (150, 75, 75),
    "grow-plant": (62, 31, 33),
    "grow-fruit": (62, 31, 33),
    "chemistry-mix": (16, 8, 8),
    "chemistry-mix-paint-secondary-color": (18, 9, 9),
    "chemistry-mix-paint-tertiary-color": (18, 9, 9),
    "lifespan-longest-lived": (62, 31, 32),
    "lifespan-shortest-lived": (62, 31, 32),
    "lifespan-longest-lived-then-shortest-lived": (62, 31, 32),
    "identify-life-stages-1": (6, 3, 5),
    "identify-life-stages-2": (4, 2, 4),
    "inclined-plane-determine-angle": (84, 42, 42),
    "inclined-plane-friction-named-surfaces": (692, 346, 348),
    "inclined-plane-friction-unnamed-surfaces": (80, 40, 42),
    "mendelian-genetics-known-plant": (60, 30, 30),
    "mendelian-genetics-unknown-plant": (240, 120, 120),
}
SPLITS = ("train", "validation", "test")  # in the order of the sizes

# The paper's evaluation: the first five test variations of every task, or all where there are fewer: 149.
PAPER_TEST_PER_TASK = 5


class ScienceWorldTasks:
    """The `TaskSource` of ScienceWorld.

    `train` are the 3,592 training variations and `test` the 149 evaluation variations of the paper;
    `validation` are development variations. A split begins with the first variation of every task, then the
    second of every task that has one, and so on: any number of tasks from its beginning is as even as can be.

    The tasks hold no goal text: only the simulator knows it, and tells it at the reset.

    Args:
        max_per_task: split -> how many variations of each task to take, from the first; all when not named.
        names: the tasks to take; all 30 when None.

    Raises:
        ValueError: an unknown split or name, or a number below 1.
    """

    def __init__(
        self,
        max_per_task: Mapping[str, int] | None = None,
        names: Sequence[str] | None = None,
    ) -> None:
        self._max_per_task = {"test": PAPER_TEST_PER_TASK} if max_per_task is None else dict(max_per_task)
        wrong = {split: n for split, n in self._max_per_task.items() if split not in SPLITS or n < 1}
        if wrong:
            raise ValueError(f"max_per_task: expected numbers of 1 or more for some of {SPLITS}, got {wrong}")
        self._names = tuple(SPLIT_SIZES) if names is None else tuple(names)
        unknown = [name for name in self._names if name not in SPLIT_SIZES]
        if unknown or not self._names:
            raise ValueError(f"names: expected some of {sorted(SPLIT_SIZES)}, got {list(self._names)}")

    def tasks(self, split: str) -> Sequence[Task]:
        if split not in SPLITS:
            raise ValueError(f"unknown split {split!r}; known: {', '.join(SPLITS)}")
        check_package()
        find_java()
        pairs = [(rank, name) for name in self._names for rank in range(self._num_taken(name, split))]
        order = {name: index for index, name in enumerate(self._names)}
        pairs.sort(key=lambda pair: (pair[0], order[pair[1]]))
        return tuple(self._task(name, split, rank) for rank, name in pairs)

    def _num_taken(self, name: str, split: str) -> int:
        size = SPLIT_SIZES[name][SPLITS.index(split)]
        return min(size, self._max_per_task.get(split, size))

    def _task(self, name: str, split: str, rank: int) -> Task:
        variation = sum(SPLIT_SIZES[name][: SPLITS.index(split)]) + rank
        return Task(
            id=f"scienceworld/{split}/{name}/{variation}",
            split=split,
            type=name,
            goal="",
            source=f"{name}/{variation}",
        )
