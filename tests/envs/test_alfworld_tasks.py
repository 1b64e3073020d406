"""The task source: counts, task texts, held-out games, the cached index, and errors that teach."""

from __future__ import annotations

import json
import logging
import shutil
from pathlib import Path

import pytest
from tiny_game import tiny_game

from had.envs.alfworld import index
from had.envs.alfworld.tasks import PAPER_COUNTS, AlfworldTasks


def _write(
    root: Path, split: str, name: str, trial: dict[str, object] | None = None, **changes: object
) -> Path:
    folder = root / "json_2.1.1" / split / name / "trial_T1"
    folder.mkdir(parents=True)
    (folder / "game.tw-pddl").write_text(json.dumps(tiny_game() | changes))
    (folder / "traj_data.json").write_text(json.dumps(trial or {"task_type": "pick_and_place_simple"}))
    return folder


@pytest.fixture
def source_of(tmp_path: Path):
    """Make a task source over tmp_path/data, with its cache in tmp_path."""

    def make(**arguments: object) -> AlfworldTasks:
        settings = {
            "data_dir": str(tmp_path / "data"),
            "expect_counts": False,
            "cache_dir": str(tmp_path / "cache"),
        }
        return AlfworldTasks(**(settings | arguments))

    return make


@pytest.fixture
def data(tmp_path: Path) -> Path:
    root = tmp_path / "data"
    for number in range(8):
        _write(root, "train", f"pick_and_place_simple-Cup-None-Drawer-{number}")
    return root


def test_task_text_is_the_first_annotation_else_the_template(data: Path, source_of, caplog) -> None:
    annotations = {"anns": [{"task_desc": " Put the cup away. "}, {"task_desc": "Store it."}]}
    _write(data, "train", "annotated", {"task_type": "pick_heat_x", "turk_annotations": annotations})
    with caplog.at_level(logging.INFO):
        tasks = {task.id: task for task in source_of().tasks("train")}
    annotated = tasks["alfworld/train/annotated/trial_T1"]
    assert (annotated.goal, annotated.type, annotated.split) == ("Put the cup away.", "pick_heat_x", "train")
    assert sorted({task.goal for task in tasks.values()}) == [
        "Put the cup away.",
        "do pick_and_place_simple.",
    ]
    assert "9 games; task text: 1 human annotations, 8 template goals" in caplog.text


def test_games_that_alfworld_does_not_play_are_left_out(data: Path, source_of, caplog) -> None:
    _write(data, "train", "pick_and_place_simple-AppleSliced-None-Drawer-1")
    _write(data, "train", "pick_and_place_with_movable_recep-Cup-Plate-Drawer-1")
    _write(data, "train", "unsolvable", solvable=False)
    (_write(data, "train", "without_game") / "game.tw-pddl").unlink()
    with caplog.at_level(logging.INFO):
        assert len(source_of().tasks("train")) == 8
    assert "1 games" in caplog.text


def test_validation_is_held_out_of_train_and_depends_on_the_seed_only(data: Path, source_of) -> None:
    source = source_of(num_validation=3, seed=5)
    train, validation = source.tasks("train"), source.tasks("validation")
    assert (len(train), len(validation)) == (5, 3)
    assert not {task.source for task in train} & {task.source for task in validation}
    assert {task.split for task in validation} == {"validation"}
    assert source_of(num_validation=3, seed=5).tasks("validation") == validation
    assert any(source_of(num_validation=3, seed=seed).tasks("validation") != validation for seed in range(5))
    assert len(source_of().tasks("train")) == 8


def test_the_index_is_read_from_the_cache_until_the_folder_changes(
    data: Path, source_of, monkeypatch
) -> None:
    expected = source_of().tasks("train")
    read = index._read_entry
    monkeypatch.setattr(index, "_read_entry", lambda *_: pytest.fail("the index was made again"))
    assert source_of().tasks("train") == expected
    monkeypatch.setattr(index, "_read_entry", read)
    trial = data / "json_2.1.1/train/pick_and_place_simple-Cup-None-Drawer-3/trial_T1/traj_data.json"
    trial.write_text(json.dumps({"task_type": "another_type"}))
    assert [task.type for task in source_of().tasks("train")].count("another_type") == 1
    shutil.rmtree(trial.parents[1])
    assert len(source_of().tasks("train")) == 7


def test_a_damaged_cache_is_made_again(data: Path, tmp_path: Path, source_of, caplog) -> None:
    expected = source_of().tasks("train")
    (cache,) = (tmp_path / "cache").iterdir()
    for content in (cache.read_text()[:50], "", "[]", '{"fingerprint": "x"}', '{"games": []}'):
        cache.write_text(content)
        assert source_of().tasks("train") == expected
    assert caplog.text.count("is damaged and is made again") == 4  # another fingerprint is no damage


def test_a_cache_folder_that_cannot_be_written_costs_only_time(
    data: Path, tmp_path: Path, source_of, caplog
) -> None:
    (tmp_path / "file").touch()
    assert len(source_of(cache_dir=str(tmp_path / "file" / "cache")).tasks("train")) == 8
    assert "cannot keep the index" in caplog.text


def test_wrong_counts_name_split_expected_and_found(data: Path, source_of) -> None:
    with pytest.raises(ValueError, match=r"'train': expected 3553 .*found 8 in .*expect_counts"):
        source_of(expect_counts=True).tasks("train")


def test_a_missing_folder_names_it_and_the_ways_out(tmp_path: Path, source_of) -> None:
    with pytest.raises(FileNotFoundError) as error:
        source_of().tasks("valid_seen")
    folder = str(tmp_path / "data/json_2.1.1/valid_seen")
    for part in (folder, "alfworld-download", "$ALFWORLD_DATA", "env=household"):
        assert part in str(error.value)


def test_unknown_splits_and_bad_numbers(data: Path, source_of) -> None:
    with pytest.raises(ValueError, match="unknown split 'test'; known: train, valid_seen, valid_unseen"):
        source_of().tasks("test")
    with pytest.raises(ValueError, match="needs num_validation > 0"):
        source_of().tasks("validation")
    with pytest.raises(ValueError, match="num_validation must be 0 or more"):
        source_of(num_validation=-1)
    with pytest.raises(ValueError, match="'train' has 8 games"):
        source_of(num_validation=8).tasks("train")


def test_a_damaged_game_stays_a_task_and_is_named_at_every_start(data: Path, source_of, caplog) -> None:
    expected = source_of().tasks("train")
    path = data / "json_2.1.1/train/pick_and_place_simple-Cup-None-Drawer-3/trial_T1/game.tw-pddl"
    path.write_text("{")
    for _ in range(2):  # read, and from the cached index
        caplog.clear()
        tasks = source_of().tasks("train")
        assert [task.id for task in tasks] == [task.id for task in expected]
        assert [(task.type, task.goal) for task in tasks if task.source == str(path)] == [
            ("pick_and_place_simple", "")
        ]
        for words in ("1 of the 8 games", str(path), "is not JSON", "alfworld-download", "counted as failed"):
            assert words in caplog.text


def test_a_damaged_trial_file_leaves_its_game_playable(data: Path, source_of, caplog) -> None:
    expected = source_of().tasks("train")
    path = data / "json_2.1.1/train/pick_and_place_simple-Cup-None-Drawer-3/trial_T1/traj_data.json"
    path.write_text("[]")
    assert source_of().tasks("train") == expected  # the type is in the folder's name
    assert str(path) in caplog.text and "'task_type'" in caplog.text


def test_a_folder_of_damaged_games_only_is_refused(data: Path, source_of) -> None:
    for path in data.rglob("game.tw-pddl"):
        path.write_text("")
    with pytest.raises(ValueError, match=r"(?s)all 8 games of .*train are damaged; the first: .*is not JSON"):
        source_of().tasks("train")


def test_data_dir_comes_from_the_environment(data: Path, tmp_path: Path, source_of, monkeypatch) -> None:
    monkeypatch.setenv("ALFWORLD_DATA", str(data))
    assert len(source_of(data_dir=None).tasks("train")) == 8


@pytest.mark.alfworld_data
@pytest.mark.parametrize(
    "split", ["valid_seen", "valid_unseen", pytest.param("train", marks=pytest.mark.slow)]
)
def test_the_real_splits_have_the_papers_counts(
    alfworld_data: Path, tmp_path: Path, caplog, split: str
) -> None:
    tasks = AlfworldTasks(str(alfworld_data), cache_dir=str(tmp_path)).tasks(split)
    assert len(tasks) == len({task.id for task in tasks}) == PAPER_COUNTS[split]
    assert "damaged" not in caplog.text
