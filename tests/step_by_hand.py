"""A tiny student, random records and a trainer for tests of the optimizer step."""

from __future__ import annotations

import functools
import math
import random
from dataclasses import replace

import lightning
import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, Dataset

from had.batch import TokenBatch
from had.data.layouts import ActionPairLayout, ResponseLayout
from had.faults.skipped_updates import SkippedUpdates
from had.losses.action_preference import ActionPreference
from had.losses.balance import Balance, GradientNormBalance
from had.losses.response_nll import ResponseNLL
from had.losses.term import Term
from had.models.schedule import cosine_with_warmup
from had.models.tiny import make_qwen3
from had.module import DistillationModule
from had.records import Record, Response, TeacherLabels, Verdict

NUM_WORDS, END = 40, 39
SHAPE = {"hidden": 32, "layers": 2, "heads": 2, "kv_heads": 1, "head_dim": 16, "intermediate": 48}
HAD = (ResponseLayout(), ActionPairLayout())


def random_reply(rng: random.Random, has_action: bool = True) -> Response:
    reasoning = tuple(rng.randrange(NUM_WORDS) for _ in range(rng.randrange(6)))
    action = tuple(rng.randrange(NUM_WORDS) for _ in range(rng.randrange(1, 5)))
    ids = (*reasoning, *action, END)
    span = (len(reasoning), len(reasoning) + len(action)) if has_action else (0, 0)
    return Response(ids, (0.0,) * len(ids), "", True, "go" if has_action else None, None, span)


def random_records(num: int, seed: int = 0) -> list[Record]:
    """Records of every kind: differing and equal pairs, rejected positives, missing actions on each side."""
    rng = random.Random(seed)
    records = []
    for index in range(num):
        kind = index % 6
        positive = random_reply(rng, has_action=kind != 1)
        negative = positive if kind == 2 else random_reply(rng, has_action=kind != 3)
        student = random_reply(rng, has_action=kind != 4)
        verdict = Verdict.UNPARSABLE if kind == 1 else Verdict.NOT_ADMISSIBLE if kind == 5 else Verdict.VALID
        verdict = Verdict.VALID if kind == 5 and index % 2 else verdict
        prompt = tuple(rng.randrange(NUM_WORDS) for _ in range(rng.randrange(1, 30)))
        labels = TeacherLabels(positive=positive, negative=negative, verdict=verdict)
        records.append(Record(f"r{index:03d}", "e", index, 0.0, 0, 0, prompt, (), student, labels))
    return records


def make_module(
    terms: list[Term] | None = None,
    balance: Balance | None = None,
    max_grad_norm: float = math.inf,
    tie_embeddings: bool = True,
    faults: SkippedUpdates | None = None,
) -> DistillationModule:
    return DistillationModule(
        model=make_qwen3(NUM_WORDS, **SHAPE, seed=1, tie_embeddings=tie_embeddings),
        terms=terms or [ResponseNLL(), ActionPreference()],
        balance=balance or GradientNormBalance(),
        optimizer=functools.partial(torch.optim.AdamW, lr=1e-3, weight_decay=0.01),
        scheduler=functools.partial(cosine_with_warmup, num_updates=10, num_warmup=2),
        max_grad_norm=max_grad_norm,
        faults=faults,
    )


def flat_gradient(model: torch.nn.Module) -> torch.Tensor:
    return torch.cat([p.grad.double().flatten() for p in model.parameters() if p.grad is not None])


def flat_parameters(model: torch.nn.Module) -> torch.Tensor:
    return torch.cat([p.detach().double().flatten() for p in model.parameters()])


def relative_error(value: torch.Tensor, expected: torch.Tensor) -> float:
    return ((value - expected).norm() / expected.norm()).item()


def only(records: list[Record], verdict: Verdict) -> list[Record]:
    return [replace(record, labels=replace(record.labels, verdict=verdict)) for record in records]


def make_trainer(**arguments: object) -> lightning.Trainer:
    return lightning.Trainer(
        accelerator="cpu",
        max_epochs=1,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        use_distributed_sampler=False,
        **arguments,  # type: ignore[arg-type]
    )


class RankSteps(Dataset[list[TokenBatch]]):
    """For each rank its own list of steps."""

    def __init__(self, steps: list[list[list[TokenBatch]]]) -> None:
        self.steps = steps

    def __len__(self) -> int:
        return len(self.steps[0])

    def __getitem__(self, index: int) -> list[TokenBatch]:
        return self.steps[dist.get_rank() if dist.is_initialized() else 0][index]


def fit(module: DistillationModule, steps: list[list[list[TokenBatch]]], **arguments: object) -> None:
    make_trainer(**arguments).fit(module, DataLoader(RankSteps(steps), batch_size=None))
