"""The splits: their sizes, their order, and that the table is what the simulator says."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from had.envs.scienceworld.tasks import SPLIT_SIZES, SPLITS, ScienceWorldTasks
from had.records import Task


@pytest.fixture
def source(monkeypatch: pytest.MonkeyPatch) -> ScienceWorldTasks:
    """The paper's splits; listing them needs neither Java nor the package."""
    monkeypatch.setattr("had.envs.scienceworld.tasks.check_package", lambda: None)
    monkeypatch.setattr("had.envs.scienceworld.tasks.find_java", lambda: None)
    return ScienceWorldTasks()


def test_the_splits_have_the_papers_sizes(source: ScienceWorldTasks) -> None:
    assert len(SPLIT_SIZES) == 30
    assert {split: len(source.tasks(split)) for split in SPLITS} == {
        "train": 3592,
        "validation": 1796,
        "test": 149,
    }


def test_evaluation_takes_the_first_five_test_variations_or_fewer(source: ScienceWorldTasks) -> None:
    counts = Counter(task.type for task in source.tasks("test"))
    assert [name for name, count in counts.items() if count != 5] == ["identify-life-stages-2"]
    assert counts["identify-life-stages-2"] == 4
    boil = [task.source for task in source.tasks("test") if task.type == "boil"]
    assert boil == ["boil/21", "boil/22", "boil/23", "boil/24", "boil/25"]


def test_no_variation_is_in_two_splits(source: ScienceWorldTasks) -> None:
    sources = [task.source for split in SPLITS for task in source.tasks(split)]
    assert len(set(sources)) == len(sources)


def test_a_split_begins_with_every_task_once(source: ScienceWorldTasks) -> None:
    assert source.tasks("test")[0] == Task("scienceworld/test/boil/21", "test", "boil", "", "boil/21")
    for split in SPLITS:
        assert [task.type for task in source.tasks(split)[:30]] == list(SPLIT_SIZES)


def test_fewer_tasks_can_be_taken(source: ScienceWorldTasks) -> None:
    few = ScienceWorldTasks({"train": 2, "test": 1}, ["boil", "identify-life-stages-2"])
    assert [task.source for task in few.tasks("train")] == [
        "boil/0",
        "identify-life-stages-2/0",
        "boil/1",
        "identify-life-stages-2/1",
    ]
    assert len(few.tasks("validation")) == 7 + 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (({"dev": 1},), "max_per_task"),
        (({"test": 0},), "max_per_task"),
        ((None, ["cook"]), "names: expected"),
        ((None, []), "names: expected"),
    ],
)
def test_wrong_arguments(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ScienceWorldTasks(*arguments)


def test_an_unknown_split(source: ScienceWorldTasks) -> None:
    with pytest.raises(ValueError, match="unknown split 'dev'; known: train, validation, test"):
        source.tasks("dev")


@pytest.mark.java
def test_the_table_is_what_the_simulator_says(env: Any) -> None:
    for name, sizes in SPLIT_SIZES.items():
        simulator = env.load(Task("t", "train", name, "", f"{name}/0"))
        numbers = [
            list(simulator.getVariationsTrain()),
            list(simulator.getVariationsDev()),
            list(simulator.getVariationsTest()),
        ]
        assert tuple(len(split) for split in numbers) == sizes
        assert [number for split in numbers for number in split] == list(range(sum(sizes)))
    assert sorted(simulator.getTaskNames()) == sorted(SPLIT_SIZES)
