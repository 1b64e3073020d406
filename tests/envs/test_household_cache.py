"""The cache of generated games: made once, repaired when broken, safe with several processes at once."""

from __future__ import annotations

import multiprocessing
import shutil
from pathlib import Path

import pytest

from had.envs.household import cache
from had.envs.household.source import HouseholdTasks


def _tasks(folder: Path, num_train: int = 100) -> HouseholdTasks:
    return HouseholdTasks("small", num_train=num_train, cache_dir=folder)


def _contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def _load(folder: Path) -> list[str]:
    return [task.source for task in _tasks(folder).tasks("train")]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("household")
    _tasks(folder).tasks("train")
    return folder


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "cache"))


def _refuse(*_: object) -> None:
    raise AssertionError("a game was made although it is in the cache")


def test_games_are_made_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "make_game", _refuse)
    assert len(_tasks(folder).tasks("train")) == 100
    assert [task.id for task in _tasks(folder, 7).tasks("train")] == [
        task.id for task in _tasks(folder).tasks("train")[:7]
    ]


def test_more_games_begin_with_the_same_ones(folder: Path) -> None:
    before = _contents(folder)
    few, many = _tasks(folder).tasks("train"), _tasks(folder, 150).tasks("train")
    assert len(many) == 150
    assert many[:100] == few
    assert before.items() <= _contents(folder).items()


@pytest.mark.parametrize(
    "fault", ["no index", "no game", "cut game", "cut index", "empty folder", "other index", "other rows"]
)
def test_a_broken_cache_is_made_anew(folder: Path, fault: str, caplog: pytest.LogCaptureFixture) -> None:
    whole = _contents(folder)
    game = Path(_load(folder)[42])
    index = game.parents[1] / "tasks.json"
    if fault == "no index":
        index.unlink()
    elif fault == "no game":
        shutil.rmtree(game.parent)
    elif fault == "empty folder":
        shutil.rmtree(game.parents[1])
        game.parents[1].mkdir()
    elif fault.startswith("other"):
        index.write_text('{"games": 100}' if fault == "other index" else '[{"id": 1}]')
    else:
        path = game if fault == "cut game" else index
        path.write_bytes(path.read_bytes()[:-100])
    _tasks(folder).tasks("train")
    assert _contents(folder) == whole
    assert caplog.text.count("damaged and are made again") == 1 and str(game.parents[1]) in caplog.text


def test_two_processes_can_start_at_once(made: Path, tmp_path: Path) -> None:
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        first, second = pool.map(_load, [tmp_path, tmp_path])
    assert first == second
    assert _contents(tmp_path) == _contents(made)


def test_the_folder_is_the_users(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HAD_CACHE", str(tmp_path))
    assert cache.default_root() == tmp_path / "household"
    monkeypatch.delenv("HAD_CACHE")
    assert cache.default_root() == Path.home() / ".cache" / "had" / "household"
