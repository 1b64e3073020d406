"""A program that measures what a plan predicts: memory of optimizer steps, or of a generating engine.

Run with MALLOC_MMAP_THRESHOLD_=65536: the C library then gives freed blocks back, as a plan assumes.
"""

from __future__ import annotations

import functools
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import torch

from had.batch import SpanSet, TokenBatch
from had.engines.base import SamplingParams
from had.engines.hf import HFEngine
from had.losses.action_preference import ActionPreference
from had.losses.balance import GradientNormBalance
from had.losses.response_nll import ResponseNLL
from had.models.sharding import Placement
from had.models.tiny import make_qwen3
from had.module import DistillationModule
from peak_memory import peak_kib

VOCABULARY = 8000
SHAPE = {"hidden": 512, "layers": 6, "heads": 8, "kv_heads": 4, "head_dim": 64, "intermediate": 1536}
ROWS, TOKENS, SCORED = 2, 1024, 400  # of a micro-batch
ENGINE_ROWS, PROMPT, NEW = 8, 1500, 4
ENGINE_SHAPE = {**SHAPE, "layers": 12, "kv_heads": 8}  # a cache that outweighs the rest


def current_kib() -> int:
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.split("VmRSS:")[1].split()[0])


def warm_up() -> None:
    """Load what torch loads at the first use."""
    layer = torch.nn.Linear(8, 8)
    layer(torch.ones(2, 8)).sum().backward()
    torch.optim.AdamW(layer.parameters()).step()
    make_qwen3(32, 16, 1, 1, 1, 16, 16)(torch.zeros(1, 2, dtype=torch.long))


def spans(num: int) -> SpanSet:
    """The last `num` tokens of every row."""
    rows, count = torch.arange(ROWS), ROWS * num
    return SpanSet(
        rows_N=rows.repeat_interleave(num),
        sources_N=torch.arange(TOKENS - num - 1, TOKENS - 1).repeat(ROWS),
        targets_N=torch.zeros(count, dtype=torch.long),
        spans_N=rows.repeat_interleave(num),
        lengths_S=torch.full((ROWS,), num),
        weights_S=torch.ones(ROWS),
        records_S=rows,
    )


def train(is_checkpointed: bool) -> None:
    """Two updates of HAD, two micro-batches each."""
    placement = Placement(activation_checkpointing=is_checkpointed)
    module = DistillationModule(
        placement.prepare(make_qwen3(VOCABULARY, **SHAPE)),
        [ResponseNLL(), ActionPreference()],
        GradientNormBalance(),
        functools.partial(torch.optim.AdamW, lr=1e-3),
        lambda optimizer: None,  # type: ignore[arg-type, return-value]
        placement=placement,
    )
    optimizer = module.make_optimizer(module.model.parameters())
    quarter = SCORED // ROWS // 4
    roles = {"response": spans(2 * quarter), "preferred": spans(quarter), "dispreferred": spans(quarter)}
    num = 2.0 * ROWS
    counts = {name: num for name in ("records", "pairs", "accepted", "differing", "weighted_spans_response")}
    batch = TokenBatch(
        torch.randint(0, VOCABULARY, (ROWS, TOKENS)),
        torch.arange(TOKENS).repeat(ROWS, 1),
        torch.zeros(ROWS, TOKENS, dtype=torch.long),
        torch.tensor([[-1, 0, 0, 0, 0]] * ROWS),
        roles,
        {**counts, "tokens": num},
    )
    for _ in range(2):
        module.compute_gradient([batch, batch])
        optimizer.step()
        optimizer.zero_grad()


def play() -> None:
    """Two turns of the same episodes: the second keeps the cache of the first."""
    slots = ENGINE_ROWS * (PROMPT + 2 * NEW + 8)
    model = make_qwen3(VOCABULARY, **ENGINE_SHAPE)
    engine = HFEngine(model, [VOCABULARY - 1], 4096, max_batch_tokens=slots, prefix_cache_tokens=slots)
    prompts = [[row + 1, *range(PROMPT - 1)] for row in range(ENGINE_ROWS)]
    params = SamplingParams(1.0, NEW)
    for _ in range(2):
        answers = engine.generate(prompts, params, list(range(ENGINE_ROWS)))
        prompts = [[*prompt, *answer.ids, 5] for prompt, answer in zip(prompts, answers, strict=True)]  # type: ignore[union-attr]


if __name__ == "__main__":
    torch.set_num_threads(1)
    warm_up()
    before = current_kib()
    {"checkpointed": lambda: train(True), "kept": lambda: train(False), "engine": play}[sys.argv[1]]()
    print(json.dumps({"bytes": 1024 * (peak_kib() - before)}))
