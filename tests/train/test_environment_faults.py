"""Whole runs whose environments fail for real: dead and hanging workers, damaged games, nothing but those."""

from __future__ import annotations

import csv
import json
import shutil
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from had.envs.household.source import HouseholdTasks
from had.records import Task
from malformed_games import DAMAGES, damage, write_alfworld
from scripts import run_script

NUM_TASKS = 6  # of a round; the slots of the pool
SHORT = ["trainer.max_steps=3", "evaluation.num_tasks=1", "evaluation.num_validation_tasks=1"]


def rounds(folder: Path) -> list[dict[str, str]]:
    with open(folder / "rounds.csv", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def episodes(folder: Path) -> list[dict[str, str]]:
    """All episodes of all rounds."""
    files = sorted((folder / "transcripts").glob("round_*.jsonl"))
    return [json.loads(line) for file in files for line in file.read_text("utf-8").splitlines()]


def log(folder: Path) -> str:
    (file,) = folder.glob("*.log")
    return file.read_text("utf-8")


def test_a_worker_is_killed_and_another_hangs(tiny_run: list[str], tmp_path: Path):
    pool = {"_target_": "failing_pool.FailingPool", "num_workers": 2, "num_slots": NUM_TASKS, "timeout_s": 2}
    options = [*SHORT, f"evaluation.transcripts_per_round={NUM_TASKS}"]
    options += [f"++env.pools.native.{name}={value}" for name, value in pool.items()]
    assert run_script("train.py", *tiny_run, *options, f"hydra.run.dir={tmp_path}") == 0
    table = rounds(tmp_path)
    failed = {int(row["round"]): (row["num_env_failed"], row["num_failed"]) for row in table}
    assert {number: counts for number, counts in failed.items() if counts != ("0", "0")} == {
        0: ("3", "3"),  # of the slots 0, 2, 4
        1: ("3", "3"),  # of the slots 1, 3, 5
    }
    messages = Counter(episode["message"].partition(" ")[2] for episode in episodes(tmp_path))
    del messages[""]
    assert sorted(message.partition(" ")[2] for message in messages.elements()) == [
        *["did not answer within 2 s"] * 3,
        *["died (exit status -9)"] * 3,
    ]
    assert log(tmp_path).count("it is replaced") == 2
    summary = json.loads((tmp_path / "summary.json").read_text("utf-8"))
    assert summary["updates"] == 3 and summary["costs"]["num_env_failed"] == 6
    assert all(int(row["num_records"]) > 0 for row in table)  # those that lived were labelled


@pytest.fixture(scope="module")
def games(tiny_run: list[str], tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Task]]:
    """A cache of generated games of its own, and its training games."""
    (cache,) = (Path(option.partition("=")[2]) for option in tiny_run if "cache_dir=" in option)
    HouseholdTasks(num_train=100, cache_dir=cache).tasks("train")
    own = tmp_path_factory.mktemp("damaged") / "games"
    shutil.copytree(cache, own)
    return own, list(HouseholdTasks(num_train=100, cache_dir=own).tasks("train"))


def on_alfworld(tiny_run: Sequence[str], data: Path) -> list[str]:
    """The same run on ALFWorld's own data."""
    kept = [option for option in tiny_run if not option.startswith("env.tasks.")]
    tasks = ["expect_counts=false", "num_validation=4", f"cache_dir={data / 'index'}"]
    tasks.append("splits={train: train, valid_seen: train, valid_unseen: train}")
    return [
        "env=alfworld_small", *kept, *SHORT, f"env.data_dir={data}", f"data.tasks_per_round={NUM_TASKS}",
        f"evaluation.transcripts_per_round={NUM_TASKS}", *(f"++env.tasks.{task}" for task in tasks),
    ]  # fmt: skip


def test_damaged_games_among_good_ones_are_counted(
    games: tuple[Path, list[Task]], tiny_run: list[str], tmp_path: Path
):
    """Every other game of ALFWorld's folder is damaged, in all ways."""
    files = write_alfworld(games[1][: 4 * len(DAMAGES)], tmp_path / "data")
    damages = dict(zip(files[::2], [*DAMAGES, *DAMAGES], strict=True))
    for file, name in damages.items():
        damage(file, name)
    run = tmp_path / "run"
    assert run_script("train.py", *on_alfworld(tiny_run, tmp_path / "data"), f"hydra.run.dir={run}") == 0
    played, failed = 0, 0
    for episode in episodes(run):
        file = tmp_path / "data/json_2.1.1" / episode["task"].removeprefix("alfworld/") / "game.tw-pddl"
        played += 1
        if file in damages:
            failed += 1
            assert episode["status"] == "env_failed" and episode["turns"] == []
            assert str(file) in episode["message"] and DAMAGES[damages[file]][1] in episode["message"]
        else:
            assert episode["message"] == ""
    assert 0 < failed < played
    assert sum(int(row["num_env_failed"]) for row in rounds(run)) == failed
    assert sum(int(row["num_episodes"]) for row in rounds(run)) == played
    assert json.loads((run / "summary.json").read_text("utf-8"))["updates"] == 3
    assert f"{len(damages)} of the {len(files)} games of" in log(run) and "alfworld-download" in log(run)


def test_alfworld_with_damaged_games_only_is_refused_before_anything_is_loaded(
    games: tuple[Path, list[Task]], tiny_run: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    for file in write_alfworld(games[1][:8], tmp_path / "data"):
        damage(file, "cut short")
    run = tmp_path / "run"
    assert run_script("train.py", *on_alfworld(tiny_run, tmp_path / "data"), f"hydra.run.dir={run}") == 2
    said = capsys.readouterr().err
    for words in ("all 8 games of", str(tmp_path / "data"), "is not JSON", "alfworld-download --force"):
        assert words in said
    assert not (run / "provenance.json").exists()


def test_generated_games_that_are_all_damaged_stop_the_run(
    games: tuple[Path, list[Task]], tiny_run: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    """Of the right size, so that no check of the cache finds them."""
    cache, tasks = games
    for task in tasks:
        damage(Path(task.source), "zeros")
    options = [*tiny_run, *SHORT, f"env.tasks.cache_dir={cache}"]
    assert run_script("train.py", *options, f"hydra.run.dir={tmp_path / 'train'}") == 1
    said = capsys.readouterr().err
    for words in ("5 rounds brought no full batch", "30 failed", "game.tw-pddl is not JSON", "made again"):
        assert words in said
    options += ["evaluation.splits=[train]", "evaluation.num_tasks=3"]
    assert run_script("train.py", *options, f"hydra.run.dir={tmp_path / 'evaluation'}") == 1
    assert "'train': expected episodes to evaluate, not one of 3 could be started" in capsys.readouterr().err
