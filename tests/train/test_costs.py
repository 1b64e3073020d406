"""What a run says about its time and its tokens, recomputed from its other files."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from had.callbacks.round_costs import is_measured

BATCH_SIZE, NUM_TASKS, NUM_SLOTS = 12, 6, 16
PHASES = ("collect", "label", "train", "evaluate", "sync", "save")
SHARES = (
    "busy_share_collect",
    "busy_share_label",
    "batch_share_collect",
    "cache_share_collect",
    "cache_share_label",
)


def rows(folder: Path, name: str) -> list[dict[str, str]]:
    with open(folder / name, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def dumped(folder: Path) -> list[dict]:
    files = sorted((folder / "records").glob("round_*.jsonl"))
    return [json.loads(line) for file in files for line in file.read_text("utf-8").splitlines()]


@pytest.fixture(scope="module")
def rounds(finished_run: Path) -> list[dict[str, str]]:
    return rows(finished_run, "rounds.csv")


@pytest.fixture(scope="module")
def costs(finished_run: Path) -> dict:
    return json.loads((finished_run / "summary.json").read_text("utf-8"))["costs"]


def test_tokens_are_those_of_the_records(finished_run: Path, rounds: list[dict[str, str]], costs: dict):
    """No state of this run stayed without labels, so the records hold all that was sampled."""
    assert {row["num_unlabelled"] for row in rounds} == {"0"}
    assert costs["num_unlabelled"] == 0
    totals = dict.fromkeys(("num_turns", "tokens_collect", "tokens_label_generated"), 0)
    for row in rounds:
        own = [record for record in dumped(finished_run) if record["round"] == int(row["round"])]
        answers = [len(record[name]["ids"]) for record in own for name in ("positive", "negative")]
        expected = {
            "num_turns": len(own),
            "tokens_collect": sum(len(record["student"]["ids"]) for record in own),
            "tokens_label_generated": sum(answers),
        }
        assert {name: int(row[name]) for name in expected} == expected
        assert row["tokens_label_scored"] == "0"
        totals = {name: totals[name] + value for name, value in expected.items()}
    assert {name: costs[name] for name in totals} == totals


def test_trained_tokens_are_those_of_the_updates(
    finished_run: Path, rounds: list[dict[str, str]], costs: dict
):
    updates = rows(finished_run, "updates.csv")
    for row in rounds:
        own = [int(update["tokens"]) for update in updates if update["round"] == row["round"]]
        assert int(row["tokens_train"]) == sum(own)
    assert costs["tokens_train"] == sum(int(update["tokens"]) for update in updates)


def test_lags_are_those_of_the_records(finished_run: Path, rounds: list[dict[str, str]], costs: dict):
    version_of = {row["update"]: int(row["policy_version"]) for row in rows(finished_run, "updates.csv")}
    round_of = {row["update"]: row["round"] for row in rows(finished_run, "updates.csv")}
    used = [record for record in dumped(finished_run) if record["update"] is not None]
    lags = {record["id"]: version_of[str(record["update"])] - record["policy_version"] for record in used}
    assert max(lags.values()) == 1  # something waited for the next version
    for row in rounds:
        own = [lags[r["id"]] for r in used if round_of[str(r["update"])] == row["round"]]
        assert float(row["lag_mean"]) == pytest.approx(sum(own) / len(own), abs=1e-6)
        assert int(row["lag_max"]) == max(own)
    assert costs["lag_mean"] == pytest.approx(sum(lags.values()) / len(lags), abs=1e-6)
    assert costs["lag_max"] == 1


def test_speeds_are_counts_by_seconds(rounds: list[dict[str, str]], costs: dict):
    speeds = {
        "turns_per_s": ("num_turns", "collect"),
        "tokens_collect_per_s": ("tokens_collect", "collect"),
        "tokens_label_generated_per_s": ("tokens_label_generated", "label"),
        "tokens_train_per_s": ("tokens_train", "train"),
    }
    for name, (count, phase) in speeds.items():
        for row in rounds:
            seconds = float(row[f"seconds_{phase}"])
            assert float(row[name]) == pytest.approx(int(row[count]) / seconds, rel=1e-3 / seconds)
        total = sum(float(row[f"seconds_{phase}"]) for row in rounds)
        assert costs[name] == pytest.approx(costs[count] / total, rel=3e-3 / total)


def test_the_seconds_of_the_rounds_add_up_to_those_of_the_run(
    finished_run: Path, rounds: list[dict[str, str]]
):
    """Up to what comes after the last round: the evaluation after training, and saving the students."""
    summary = json.loads((finished_run / "summary.json").read_text("utf-8"))["seconds"]
    for phase in PHASES:
        total = sum(float(row[f"seconds_{phase}"]) for row in rounds)
        if phase in ("evaluate", "save"):
            assert 0 < total < summary[phase]
        else:
            assert total == pytest.approx(summary[phase], abs=0.02)
    updates = sum(float(row["seconds"]) for row in rows(finished_run, "updates.csv"))
    assert summary["train"] == pytest.approx(updates, abs=0.02)


def test_shares_are_shares(rounds: list[dict[str, str]], costs: dict):
    for row in rounds:
        for name in SHARES:
            assert 0 < float(row[name]) <= 1
            assert is_measured(name)
        # six episodes in sixteen slots can fill six
        assert float(row["batch_share_collect"]) <= NUM_TASKS / NUM_SLOTS
    for name in SHARES:
        values = [float(row[name]) for row in rounds]
        assert min(values) <= costs[name] <= max(values)


def test_the_batch_is_the_mean_number_of_rows_that_decode(finished_run: Path, rounds: list[dict[str, str]]):
    """The slow way: the replies of a turn are decoded side by side until the longest of them ends."""
    for row in rounds:
        by_turn: dict[int, list[int]] = {}
        for record in dumped(finished_run):
            if record["round"] == int(row["round"]):
                by_turn.setdefault(record["turn"], []).append(len(record["student"]["ids"]))
        steps = sum(max(lengths) for lengths in by_turn.values())
        tokens = sum(sum(lengths) for lengths in by_turn.values())
        expected = tokens / steps / NUM_SLOTS
        assert float(row["batch_share_collect"]) == pytest.approx(expected, abs=1e-6)


def test_every_round_has_sampled_transcripts(finished_run: Path, rounds: list[dict[str, str]]):
    for row in rounds:
        path = finished_run / "transcripts" / f"round_{int(row['round']):04d}.jsonl"
        episodes = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
        assert len(episodes) == 2 and all(episode["turns"] for episode in episodes)
