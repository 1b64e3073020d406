"""What a run leaves behind: names, columns and formats that others build on."""

from __future__ import annotations

import csv
import json
from collections import Counter
from pathlib import Path

import pytest
import torch
import yaml
from transformers import AutoModelForCausalLM, AutoTokenizer

NUM_UPDATES, BATCH_SIZE, NUM_TASKS = 6, 12, 3
UPDATE_COLUMNS = (
    "update,round,policy_version,lr,loss_response,loss_preference,grad_norm_response,grad_norm_preference,"
    "balance,grad_norm_total,num_records,num_pairs,num_accepted,num_differing,tokens,"
    "skipped_updates,split_batches,seconds"
)
METRICS = {
    "sr", "score", "turns_success", "prevention", "recovery",
    "hu", "hu_available", "hu_situation", "hu_budget", "hu_failure", "hu_stall",
}  # fmt: skip
RECORD_KEYS = {
    "id", "episode", "turn", "policy_version", "prompt_ids", "prompt_ids_without", "student", "positive",
    "negative", "verdict", "is_valid", "update",
}  # fmt: skip


def rows(folder: Path, name: str) -> list[dict[str, str]]:
    with open(folder / name, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def records(folder: Path) -> list[dict]:
    files = sorted((folder / "records").glob("round_*.jsonl"))
    return [json.loads(line) for file in files for line in file.read_text("utf-8").splitlines()]


@pytest.fixture(scope="module")
def summary(finished_run: Path) -> dict:
    return json.loads((finished_run / "summary.json").read_text("utf-8"))


def test_the_folder_holds_what_was_promised(finished_run: Path):
    found = {path.name for path in finished_run.iterdir()}
    assert found >= {
        "config.yaml", "provenance.json", "summary.json", "updates.csv", "rounds.csv", "eval.csv",
        "transcripts", "checkpoints", "student", "records",
    }  # fmt: skip


def test_the_configuration_is_resolved(finished_run: Path):
    text = (finished_run / "config.yaml").read_text("utf-8")
    config = yaml.safe_load(text)
    assert "${" not in text
    assert config["seed"] == 0 and config["trainer"]["max_steps"] == NUM_UPDATES
    assert config["paths"]["output_dir"] == str(finished_run)


def test_provenance_tells_how_to_repeat_the_run(finished_run: Path):
    provenance = json.loads((finished_run / "provenance.json").read_text("utf-8"))
    assert provenance["seed"] == 0
    assert "train.py" in provenance["command"] and "trainer.max_steps=6" in provenance["command"]
    assert provenance["versions"]["torch"] == torch.__version__
    assert provenance["commit"]


def test_the_summary_has_its_keys_and_shares_are_fractions(summary: dict):
    assert (summary["method"], summary["env"], summary["seed"]) == ("had", "household_small", 0)
    assert summary["updates"] == NUM_UPDATES
    assert set(summary["seconds"]) == {"collect", "label", "train", "evaluate", "sync", "save"}
    assert all(value > 0 for value in summary["seconds"].values())
    assert summary["teacher"]["failures"] == 0
    for when in ("before", "after"):
        assert set(summary[when]) == {"seen", "unseen", "all"}
        for split in ("seen", "unseen"):
            assert set(summary[when][split]) == {"full", "off"}
            for metrics in summary[when][split].values():
                assert set(metrics) >= METRICS
                for estimate in metrics.values():
                    assert list(estimate) == ["value", "low", "high", "count"]
                assert metrics["sr"]["count"] == NUM_TASKS
                assert 0 <= metrics["hu"]["value"] <= 1
        assert {"sr_mean_of_splits", "sr_pooled"} <= set(summary[when]["all"]["full"])


def test_differences_are_those_of_the_same_tasks(summary: dict):
    for split in ("seen", "unseen", "all"):
        for condition, changes in summary["differences"][split].items():
            before, after = (summary[when][split][condition] for when in ("before", "after"))
            for name, change in changes.items():
                if change["value"] is not None:
                    assert change["value"] == pytest.approx(after[name]["value"] - before[name]["value"])
            assert changes["hu"]["count"] == NUM_TASKS * (2 if split == "all" else 1)


def test_disagreement_covers_all_training_states(finished_run: Path, summary: dict):
    pairs = [(record["positive"]["action"], record["negative"]["action"]) for record in records(finished_run)]
    compared = [pair for pair in pairs if None not in pair]
    assert summary["disagreement"]["disagreement"]["count"] == len(compared)
    share = sum(positive != negative for positive, negative in compared) / len(compared)
    assert summary["disagreement"]["disagreement"]["value"] == share


def test_updates_have_a_row_each(finished_run: Path):
    text = (finished_run / "updates.csv").read_text("utf-8")
    updates = rows(finished_run, "updates.csv")
    assert text.splitlines()[0] == UPDATE_COLUMNS
    assert [int(row["update"]) for row in updates] == list(range(1, NUM_UPDATES + 1))
    for row in updates:
        assert int(row["num_records"]) == BATCH_SIZE
        assert BATCH_SIZE >= int(row["num_pairs"]) >= int(row["num_accepted"]) >= int(row["num_differing"])
        assert float(row["seconds"]) > 0


def test_rounds_and_updates_tell_the_same_story(finished_run: Path):
    updates, rounds = rows(finished_run, "updates.csv"), rows(finished_run, "rounds.csv")
    assert [int(row["round"]) for row in rounds] == list(range(len(rounds)))
    for row in rounds:
        used = BATCH_SIZE * sum(int(update["round"]) <= int(row["round"]) for update in updates)
        assert int(row["records_used"]) == used
        # a state is asked about once from each view
        so_far = rounds[: int(row["round"]) + 1]
        num_states = sum(int(r["num_records"]) + int(r["num_unlabelled"]) for r in so_far)
        assert int(row["teacher_queries"]) == 2 * num_states


def test_evaluations_agree_with_the_summary(finished_run: Path, summary: dict):
    evaluations = rows(finished_run, "eval.csv")
    assert list(evaluations[0]) == ["update", "split", "condition", "metric", "value", "low", "high", "count"]
    for when, update in (("before", 0), ("after", NUM_UPDATES)):
        for split, conditions in summary[when].items():
            for condition, metrics in conditions.items():
                chosen = {
                    row["metric"]: row
                    for row in evaluations
                    if (row["update"], row["split"], row["condition"]) == (str(update), split, condition)
                }
                assert set(chosen) == set(metrics)
                for name, estimate in metrics.items():
                    written = [chosen[name][key] for key in ("value", "low", "high", "count")]
                    assert written == ["" if value is None else str(value) for value in estimate.values()]
    validated = {row["update"] for row in evaluations if row["split"] == "validation"}
    assert validated == {"2", "5", "6"}  # rounds end at the updates 2, 5 and 6; asked for every 2


def test_every_episode_of_an_evaluation_has_a_transcript(finished_run: Path):
    for when in ("before", "after"):
        for split in ("seen", "unseen"):
            for condition in ("full", "off"):
                path = finished_run / "transcripts" / f"{when}_{split}_{condition}.jsonl"
                episodes = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
                assert len(episodes) == NUM_TASKS
                shows = any(turn["harness"] for episode in episodes for turn in episode["turns"])
                assert shows == (condition == "full")
    assert (finished_run / "transcripts" / "round_0000.jsonl").exists()


def test_the_students_are_plain_hugging_face_folders(finished_run: Path):
    checkpoint = torch.load(finished_run / "checkpoints" / "last.ckpt", weights_only=True)
    for name in ("best", "last"):
        folder = finished_run / "student" / name
        model = AutoModelForCausalLM.from_pretrained(folder, dtype="float32")
        tokenizer = AutoTokenizer.from_pretrained(folder)
        assert tokenizer.chat_template
        if name == "last":
            for key, value in model.state_dict().items():
                assert torch.equal(value, checkpoint["state_dict"][f"model.{key}"])


def test_the_checkpoints_of_the_last_two_rounds_stay(finished_run: Path):
    folder = finished_run / "checkpoints"
    ends = {int(row["round"]): int(row["update"]) for row in rows(finished_run, "updates.csv")}
    expected = [f"update_{update:06d}.ckpt" for update in sorted(ends.values())[-2:]]
    assert sorted(path.name for path in folder.iterdir()) == ["last.ckpt", *expected]
    assert (folder / "last.ckpt").resolve().name == f"update_{NUM_UPDATES:06d}.ckpt"


def test_every_record_tells_which_update_used_it(finished_run: Path):
    dumped = records(finished_run)
    assert len({record["id"] for record in dumped}) == len(dumped)
    for record in dumped:
        assert set(record) >= RECORD_KEYS
        for name in ("student", "positive", "negative"):
            answer = record[name]
            assert 0 <= answer["action_start"] <= answer["action_end"] <= len(answer["ids"])
            assert (answer["action"] is None) == (answer["failure"] is not None)
        assert record["is_valid"] == (record["verdict"] == "valid")
    used = Counter(record["update"] for record in dumped)
    num_unused = used.pop(None)
    assert used == dict.fromkeys(range(1, NUM_UPDATES + 1), BATCH_SIZE)
    assert num_unused == len(dumped) - NUM_UPDATES * BATCH_SIZE
