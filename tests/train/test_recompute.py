"""The numbers of an update, computed again from the record dump and the initial student, text by text.

Nothing of the learning half is used: no packing, no shared prefixes, no micro-batches; float64 throughout.
"""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path

import pytest
import torch
from torch import Tensor
from transformers import AutoModelForCausalLM, PreTrainedModel

RHO, BETA, MAX_NORM = 0.5, 0.5, 1.0
FLOAT32 = 2e-5  # relative; the run computes in float32


@pytest.fixture(scope="module")
def first_records(finished_run: Path) -> list[dict]:
    lines = (finished_run / "records" / "round_0000.jsonl").read_text("utf-8").splitlines()
    return [record for record in map(json.loads, lines) if record["update"] == 1]


@pytest.fixture(scope="module")
def first_update(finished_run: Path) -> dict[str, float]:
    with open(finished_run / "updates.csv", encoding="utf-8", newline="") as file:
        return {name: float(value) for name, value in next(csv.DictReader(file)).items()}


@pytest.fixture
def student(tiny_run: list[str]) -> PreTrainedModel:
    folder = tiny_run[0].partition("=")[2]
    return AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float64)


def mean_logprob(model: PreTrainedModel, context: list[int], scored: list[int]) -> Tensor:
    """(1/|scored|) log π(scored | context)."""
    ids = torch.tensor([context + scored])
    logprobs = model(input_ids=ids).logits[0].log_softmax(-1)
    positions = range(len(context) - 1, len(context) + len(scored) - 1)
    return torch.stack([logprobs[p, token] for p, token in zip(positions, scored, strict=True)]).mean()


def action(answer: dict) -> list[int]:
    return answer["ids"][answer["action_start"] : answer["action_end"]]


def preference(model: PreTrainedModel, record: dict) -> Tensor:
    reasoning = record["student"]["ids"][: record["student"]["action_start"]]
    context = record["prompt_ids"] + reasoning
    delta = mean_logprob(model, context, action(record["positive"])) - mean_logprob(
        model, context, action(record["negative"])
    )
    return -torch.nn.functional.logsigmoid(BETA * delta)


def gradient(model: PreTrainedModel, loss: Tensor) -> Tensor:
    grads = torch.autograd.grad(loss, list(model.parameters()), allow_unused=True, retain_graph=True)
    zeros = map(torch.zeros_like, model.parameters())
    return torch.cat([(z if g is None else g).flatten() for g, z in zip(grads, zeros, strict=True)])


def is_pair(record: dict) -> bool:
    return all(record[name]["action"] is not None for name in ("student", "positive", "negative"))


def test_counts_of_the_first_update(first_records: list[dict], first_update: dict[str, float]):
    pairs = [record for record in first_records if is_pair(record)]
    accepted = [record for record in pairs if record["is_valid"]]
    differing = [record for record in accepted if action(record["positive"]) != action(record["negative"])]
    counts = [len(first_records), len(pairs), len(accepted), len(differing)]
    assert counts == [first_update[f"num_{name}"] for name in ("records", "pairs", "accepted", "differing")]
    # the test would prove little otherwise
    assert len(first_records) > len(pairs) > len(accepted) > len(differing) > 1


def test_losses_gradients_and_balance_of_the_first_update(
    student: PreTrainedModel, first_records: list[dict], first_update: dict[str, float]
):
    distances = [-mean_logprob(student, r["prompt_ids"], r["positive"]["ids"]) for r in first_records]
    accepted = [record for record in first_records if is_pair(record) and record["is_valid"]]
    preferences = [preference(student, record) for record in accepted]
    loss_response, loss_preference = torch.stack(distances).mean(), torch.stack(preferences).mean()
    grad_response, grad_preference = gradient(student, loss_response), gradient(student, loss_preference)
    balance = RHO * grad_response.norm() / grad_preference.norm()
    expected = {
        "loss_response": loss_response,
        "loss_preference": loss_preference,
        "grad_norm_response": grad_response.norm(),
        "grad_norm_preference": grad_preference.norm(),
        "balance": balance,
        "grad_norm_total": (grad_response + balance * grad_preference).norm(),
    }
    for name, value in expected.items():
        assert first_update[name] == pytest.approx(value.item(), rel=FLOAT32), name


def test_equal_actions_count_as_log_2(student: PreTrainedModel, first_records: list[dict]):
    equal = [
        record
        for record in first_records
        if is_pair(record) and record["is_valid"] and action(record["positive"]) == action(record["negative"])
    ]
    assert equal
    for record in equal:
        assert preference(student, record).item() == pytest.approx(math.log(2), rel=1e-12)


def test_the_first_step_is_adamw_on_the_clipped_sum(
    student: PreTrainedModel, finished_run: Path, first_records: list[dict], first_update: dict[str, float],
):  # fmt: skip
    """The student of version 1 saw two updates; its first is checked through the second's loss.

    The second update's records were chosen and labelled before the first one was taken, so their loss under
    the once-updated student must be what updates.csv says.
    """
    lines = (finished_run / "records" / "round_0000.jsonl").read_text("utf-8").splitlines()
    second = [record for record in map(json.loads, lines) if record["update"] == 2]
    distances = [-mean_logprob(student, r["prompt_ids"], r["positive"]["ids"]) for r in first_records]
    accepted = [record for record in first_records if is_pair(record) and record["is_valid"]]
    loss = torch.stack(distances).mean() + first_update["balance"] * torch.stack(
        [preference(student, record) for record in accepted]
    ).mean()
    optimizer = torch.optim.AdamW(student.parameters(), lr=first_update["lr"], weight_decay=0.01)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(student.parameters(), MAX_NORM)
    optimizer.step()
    distances = [-mean_logprob(student, r["prompt_ids"], r["positive"]["ids"]) for r in second]
    with open(finished_run / "updates.csv", encoding="utf-8", newline="") as file:
        reported = list(csv.DictReader(file))[1]
    expected = torch.stack(distances).mean().item()
    assert float(reported["loss_response"]) == pytest.approx(expected, rel=FLOAT32)
