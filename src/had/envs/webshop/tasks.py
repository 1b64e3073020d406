"""`WebShopTasks`: the goals of a shop as tasks; the original's test goals and the others."""

from __future__ import annotations

from collections.abc import Sequence

from had.envs.webshop.shop import ShopSource
from had.records import Task

SPLITS = ("train", "validation", "test")


class WebShopTasks:
    """The `TaskSource` of a shop.

    The goals are in the original's order. The first `num_test` are `test`, the next `num_validation` are
    `validation` (the original's development goals lie there), the rest is `train`.

    Args:
        source: the shop.
        num_test: 500 in the original and in the paper.
        num_validation: goals held out of training; 0 keeps all in `train`.

    Raises:
        ValueError: a number is negative.
    """

    def __init__(self, source: ShopSource, num_test: int = 500, num_validation: int = 0) -> None:
        if num_test < 0 or num_validation < 0:
            raise ValueError(
                f"expected num_test and num_validation of 0 or more, got {num_test} and {num_validation}"
            )
        self._source = source
        self._num_test, self._num_validation = num_test, num_validation
        self._loaded: dict[str, tuple[Task, ...]] = {}

    def tasks(self, split: str) -> Sequence[Task]:
        if split not in SPLITS:
            raise ValueError(f"unknown split {split!r}; known: {', '.join(SPLITS)}")
        if split not in self._loaded:
            self._loaded[split] = self._load(split)
        return self._loaded[split]

    def _load(self, split: str) -> tuple[Task, ...]:
        shop = self._source.open()
        held_out = self._num_test + self._num_validation
        if held_out >= len(shop.goals):
            raise ValueError(
                f"this shop has {len(shop.goals)} goals, of which {self._num_test} for test and "
                f"{self._num_validation} for validation leave none for training; set num_test or "
                "num_validation lower"
            )
        bounds = {
            "test": (0, self._num_test),
            "validation": (self._num_test, held_out),
            "train": (held_out, len(shop.goals)),
        }
        first, end = bounds[split]
        return tuple(
            Task(
                id=f"{self._source.name}/{split}/{number:05d}",
                split=split,
                type=shop.catalogue.product(shop.goals[number].asin).category,
                goal=shop.goals[number].text,
                source=str(number),
            )
            for number in range(first, end)
        )
