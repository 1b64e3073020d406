"""Every method and ablation trains three updates; the teacher is asked what the table says."""

from __future__ import annotations

import csv
import json
import math
from dataclasses import dataclass

import pytest
import torch
from method_world import NUM_UPDATES, ROOT, Result, parameters, train

from had.data.layouts import ActionPairLayout

METHODS = sorted(path.stem for path in (ROOT / "configs" / "method").glob("*.yaml"))


@pytest.mark.parametrize("method", METHODS)
def test_trains_three_updates(run_of, method):
    result = run_of(method)
    assert len(result.steps) == NUM_UPDATES
    assert all(math.isfinite(value) for step in result.steps for value in step.values())
    assert all(step["grad_norm_total"] > 0 for step in result.steps)
    untrained = result.assembly.acting.student_files.model()
    before = torch.cat([parameter.detach().double().flatten() for parameter in untrained.parameters()])
    after = parameters(result.assembly)
    assert torch.isfinite(after).all() and (after - before).abs().max() > 1e-4


@pytest.mark.parametrize("method", METHODS)
def test_the_columns_of_the_method_are_filled(run_of, method):
    assembly = run_of(method).assembly
    with open(assembly.folder / "updates.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == NUM_UPDATES
    assert all(row[name] != "" for row in rows for name in assembly.config.method.columns)
    for row in rows:
        if row["num_pairs"]:
            counts = [float(row[f"num_{name}"]) for name in ("records", "pairs", "accepted", "differing")]
            assert counts == sorted(counts, reverse=True)


@dataclass(frozen=True)
class Budget:
    """What the teacher is asked: sampled answers per state that the student acted in, and what is scored."""

    answers: int
    scores_replies: bool = False
    scores_pairs: bool = False


BUDGETS = {
    "had": Budget(2),
    "no_preference": Budget(2),
    "no_validity": Budget(2),
    "positive_only": Budget(1),
    "full_response": Budget(2),
    "teacher_reference": Budget(2, scores_pairs=True),
    "student_reference": Budget(2),
    "single_view": Budget(2),
    "sopd": Budget(1),
    "sopd_2x": Budget(1),
    "opd": Budget(0, scores_replies=True),
    "opd_2x": Budget(0, scores_replies=True),
    "sage_opd": Budget(1, scores_replies=True),
    "guided_opd": Budget(0, scores_replies=True),
}


def pair_tokens(result: Result) -> int:
    """Tokens of the two actions of all accepted pairs that differ."""
    branches = [branch for record in result.records for branch in ActionPairLayout()(record).branches]
    return sum(len(branch.path[-1]) for branch in branches)


@pytest.mark.parametrize("method", METHODS)
def test_the_teacher_is_asked_what_the_table_says(run_of, method):
    result, budget = run_of(method), BUDGETS[method]
    students = [turn for turn in result.turns if turn.actor == "student"]
    played = [turn for turn in result.turns if turn.actor == "teacher"]
    usage = json.loads((result.assembly.folder / "summary.json").read_text())["teacher"]
    assert usage["queries"] == budget.answers * len(students) + len(played)
    scored = sum(len(turn.response.ids) for turn in students) if budget.scores_replies else 0
    scored += pair_tokens(result) if budget.scores_pairs else 0
    assert usage["tokens_scored"] == scored
    assert (usage["tokens_generated"] > 0) == (usage["queries"] > 0)
    assert usage["failures"] == 0 and len(result.records) == len(result.turns)


def test_guided_rounds_begin_with_the_teacher_and_end_with_the_student(run_of):
    actors = [
        {turn.actor for episode in collected.episodes for turn in episode.turns}
        for collected in run_of("guided_opd").rounds
    ]
    assert actors[0] == {"teacher"} and actors[-1] == {"student"}  # K = 3: p(0) = 1, p(2) = 0


def test_records_keep_the_negative_view_only_where_the_teacher_read_it(run_of):
    assert all(record.prompt_ids_without for record in run_of("had").records)
    for method in ("single_view", "sopd", "opd"):
        assert not any(record.prompt_ids_without for record in run_of(method).records)
    differing = [r.labels.positive.ids != r.labels.negative.ids for r in run_of("single_view").records]
    assert any(differing)  # two samples, not one sample twice


def test_a_judge_that_answers_in_words_is_asked_once_per_turn(world, tmp_path):
    result = train(world.assembly(tmp_path, "method=sage_opd", "method/judge=llm"))
    assert result.assembly.labeler.teacher.usage.queries == len(result.turns)
    # this teacher never names a judgement, so every turn counts as strong
    assert {record.labels.extra["correction"] for record in result.records} == {1.0}


def test_turns_keep_the_answer_to_their_action(run_of):
    episodes = [episode for collected in run_of("had").rounds for episode in collected.episodes]
    pairs = [pair for it in episodes for pair in zip(it.turns, it.turns[1:], strict=False)]
    assert pairs and all(turn.feedback == following.observation for turn, following in pairs)
    assert all(episode.turns[-1].feedback for episode in episodes)
