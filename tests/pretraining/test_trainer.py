"""Imitation training: losses against a slow reference, batches, schedule, and a training that was killed."""

from __future__ import annotations

import csv
import math
import multiprocessing
import os
import random
import signal
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from transformers import PreTrainedModel

from had.models.tiny import make_qwen3
from had.pretraining.corpus import Sample
from had.pretraining.trainer import Imitation, Schedule, batches, imitation_losses

VOCABULARY, PAD = 24, 0
SCHEDULE = Schedule(num_steps=9, batch_tokens=60, num_warmup=2, chunk_episodes=8, save_every_s=0.0)


def draw_samples(seed: object, count: int) -> list[Sample]:
    """Texts of 4 to 14 tokens whose reply begins somewhere in the middle."""
    rng = random.Random(f"samples/{seed}")
    samples = []
    for _ in range(count):
        length = rng.randint(4, 14)
        ids = tuple(rng.randrange(1, VOCABULARY) for _ in range(length))
        samples.append(Sample(ids, rng.randint(1, length - 1)))
    return samples


@dataclass
class DrawnCorpus:
    """Chunks of drawn samples, and which ones were asked for."""

    seed: int = 0
    asked: list[int] = field(default_factory=list)
    renderer: Any = field(
        default_factory=lambda: SimpleNamespace(tokenizer=SimpleNamespace(pad_token_id=PAD))
    )

    def chunk(self, number: int, num_episodes: int) -> list[Sample]:
        self.asked.append(number)
        return draw_samples(number, num_episodes)


def make_model(seed: int = 0) -> PreTrainedModel:
    return make_qwen3(
        VOCABULARY, hidden=16, layers=2, heads=2, kv_heads=2, head_dim=8, intermediate=24, seed=seed
    )


def training(folder: Path, schedule: Schedule = SCHEDULE, seed: int = 0, **more: Any) -> Imitation:
    return Imitation(make_model(seed), more.pop("corpus", DrawnCorpus()), schedule, folder, **more)


# losses


def test_losses_are_means_over_single_tokens_scored_one_text_at_a_time() -> None:
    model, samples = make_model(), draw_samples("losses", 5)
    replies, prompts = [], []
    for sample in samples:
        logits = model(input_ids=torch.tensor([sample.ids])).logits[0]
        for position in range(1, len(sample.ids)):
            scores = [math.exp(value) for value in logits[position - 1].tolist()]
            loss = -math.log(scores[sample.ids[position]] / sum(scores))
            (replies if position >= sample.reply_start else prompts).append(loss)
    reply, prompt = imitation_losses(model, samples, PAD)
    assert reply.item() == pytest.approx(sum(replies) / len(replies), rel=1e-5)
    assert prompt.item() == pytest.approx(sum(prompts) / len(prompts), rel=1e-5)


def test_padding_does_not_change_a_loss_or_its_gradient() -> None:
    short = Sample((3, 4, 5, 6), 2)
    long = Sample(tuple(range(1, 15)), 13)
    gradients = []
    for batch in ([short], [short, long]):
        model = make_model()
        logits = imitation_losses(model, batch, PAD)[0] * (1 if len(batch) == 1 else 3)
        if len(batch) == 2:  # two reply tokens of the short text, one of the long one
            logits = logits - imitation_losses(model, [long], PAD)[0]
        (logits / (1 if len(batch) == 1 else 2)).backward()
        gradients.append([parameter.grad for parameter in model.parameters()])
    for alone, padded in zip(*gradients, strict=True):
        torch.testing.assert_close(alone, padded, atol=1e-6, rtol=1e-4)


# batches and schedule


@pytest.mark.parametrize("batch_tokens", [20, 60, 1000])
def test_batches_hold_every_sample_once_within_the_limit(batch_tokens: int) -> None:
    samples = draw_samples("batches", 40)
    found = batches(samples, batch_tokens, random.Random(1))
    assert sorted(sample.ids for batch in found for sample in batch) == sorted(s.ids for s in samples)
    assert all(len(batch) * max(len(s.ids) for s in batch) <= batch_tokens for batch in found)
    ranges = sorted((min(len(s.ids) for s in b), max(len(s.ids) for s in b)) for b in found)
    assert all(left[1] <= right[0] for left, right in pairwise(ranges))


def test_the_order_of_batches_is_drawn() -> None:
    samples = draw_samples("order", 40)
    orders = [[b[0].ids for b in batches(samples, 40, random.Random(seed))] for seed in (1, 1, 2)]
    assert orders[0] == orders[1] != orders[2]


def test_a_text_longer_than_a_batch_stands_alone() -> None:
    samples = [Sample(tuple(range(1, 20)), 2), Sample((1, 2, 3), 1)]
    assert sorted(map(len, batches(samples, 10, random.Random(0)))) == [1, 1]


@pytest.mark.parametrize(
    ("step", "factor"),
    [(0, 0.1), (4, 0.5), (9, 1.0), (10, 1.0), (59, 1.0), (60, 1.0), (80, 0.55), (100, 0.1)],
)
def test_the_learning_rate_rises_stays_and_falls_to_a_tenth(step: int, factor: float) -> None:
    schedule = Schedule(num_steps=100, lr=2.0, num_warmup=10, decay_share=0.4)
    assert schedule.lr_at(step) == pytest.approx(2.0 * factor)


# runs


def rows(folder: Path) -> list[dict[str, str]]:
    with open(folder / "pretrain.csv", newline="") as file:
        return [{k: v for k, v in row.items() if k != "seconds"} for row in csv.DictReader(file)]


def train_and_die(folder: str, last_step: int) -> None:
    """A training whose process is killed in the middle of a chunk."""

    def report(row: dict[str, float]) -> None:
        if row["step"] == last_step:
            os.kill(os.getpid(), signal.SIGKILL)

    torch.set_num_threads(1)
    training(Path(folder)).run(report)


def test_a_killed_training_goes_on_to_the_same_weights(tmp_path: Path) -> None:
    whole = training(tmp_path / "whole")
    whole.run()
    child = multiprocessing.get_context("spawn").Process(
        target=train_and_die, args=(str(tmp_path / "cut"), 6)
    )
    child.start()
    child.join(300)
    assert child.exitcode == -signal.SIGKILL
    assert len(rows(tmp_path / "cut")) == 6
    (tmp_path / "cut" / "pretrain.tmp").write_bytes(b"half a checkpoint")
    resumed = training(tmp_path / "cut", seed=9)  # other weights to begin with
    assert 0 < resumed.step < 6 and resumed.corpus.asked == []
    resumed.run()
    assert rows(tmp_path / "cut") == rows(tmp_path / "whole")
    for name, parameter in whole.model.named_parameters():
        assert torch.equal(parameter, dict(resumed.model.named_parameters())[name]), name


def test_a_finished_training_trains_no_more(tmp_path: Path) -> None:
    first = training(tmp_path)
    first.run()
    again = training(tmp_path, seed=9)
    again.run()
    assert again.corpus.asked == [] and again.step == SCHEDULE.num_steps
    assert all(
        torch.equal(a, b) for a, b in zip(first.model.parameters(), again.model.parameters(), strict=True)
    )


def test_own_play_begins_at_its_step_and_long_texts_are_left_out(tmp_path: Path) -> None:
    schedule = Schedule(
        num_steps=6, batch_tokens=10_000, num_warmup=1, own_play_start=3, max_sample_tokens=14
    )
    played: list[int] = []

    def play_own(model: PreTrainedModel, chunk: int) -> list[Sample]:
        played.append(chunk)
        return [Sample(tuple(range(1, 16)), 3), Sample((1, 2, 3), 2)]

    run = training(tmp_path, schedule, play_own=play_own)
    run.run()
    assert played == [3, 4, 5]  # a batch holds a whole chunk: chunks and steps count alike
    counts = [int(row["samples"]) for row in rows(tmp_path)]
    assert counts == [40, 40, 40, 41, 41, 41]


def test_the_log_tells_what_was_done(tmp_path: Path) -> None:
    run = training(tmp_path)
    reported: list[dict[str, float]] = []
    run.run(reported.append)
    logged = rows(tmp_path)
    assert [int(row["step"]) for row in logged] == list(range(1, SCHEDULE.num_steps + 1))
    assert [float(row["lr"]) for row in logged] == [SCHEDULE.lr_at(step) for step in range(9)]
    assert [row["loss_reply"] for row in reported] == [float(row["loss_reply"]) for row in logged]


def test_training_learns_what_it_is_shown(tmp_path: Path) -> None:
    @dataclass
    class OneText(DrawnCorpus):
        def chunk(self, number: int, num_episodes: int) -> list[Sample]:
            return [Sample((1, 2, 3, 4, 5, 6), 3)] * 4

    schedule = Schedule(num_steps=40, lr=1e-2, num_warmup=2)
    run = training(tmp_path, schedule, corpus=OneText())
    run.run()
    losses: Sequence[float] = [float(row["loss_reply"]) for row in rows(tmp_path)]
    assert losses[-1] < 0.1 < losses[0]


def test_products_in_bfloat16_leave_the_weights_in_float32_and_lead_about_where_float32_leads(tmp_path):
    models = {}
    for name, autocast in (("exact", False), ("autocast", True)):
        schedule = Schedule(num_steps=9, batch_tokens=60, num_warmup=2, chunk_episodes=8, autocast=autocast)
        models[name] = make_model()
        Imitation(models[name], DrawnCorpus(), schedule, tmp_path / name).run()
    exact, rounded = (
        torch.cat([p.detach().flatten() for p in models[n].parameters()]) for n in ("exact", "autocast")
    )
    assert rounded.dtype == torch.float32
    start = torch.cat([p.detach().flatten() for p in make_model().parameters()])
    assert 0 < (rounded - exact).norm() < 0.2 * (exact - start).norm()
