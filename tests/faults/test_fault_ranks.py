"""A fault on one of two ranks: both decide alike, none waits for the other for ever."""

from __future__ import annotations

import json
import math
import os
from dataclasses import replace
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

from faulty_terms import HungryBackward
from had.batch import TokenBatch
from had.data.packing import pack
from had.faults.out_of_memory import DoesNotFitError, run_once
from had.faults.skipped_updates import NotFiniteError
from had.losses.response_nll import ResponseNLL
from had.module import DistillationModule
from step_by_hand import HAD, flat_gradient, make_module, random_records, relative_error

LARGE, ENOUGH = 10_000, 10**6
RECORDS = random_records(24)


def own_step(rank: int) -> list[TokenBatch]:
    return pack(RECORDS[12 * rank : 12 * (rank + 1)], HAD, LARGE, pad_id=0)


def poisoned(step: list[TokenBatch]) -> list[TokenBatch]:
    spans = step[0].spans["response"]
    broken = replace(spans, weights_S=spans.weights_S * math.inf)
    return [replace(step[0], spans={**step[0].spans, "response": broken}), *step[1:]]


def error_of(module: DistillationModule, step: list[TokenBatch]) -> str:
    try:
        module.compute_gradient(step)
    except (NotFiniteError, MemoryError) as error:
        return f"{type(error).__name__}: {error}"
    return "none"


def hungry(most: int) -> DistillationModule:
    return make_module([ResponseNLL(), HungryBackward(most)])


def on_a_rank(rank: int, folder: Path) -> None:
    """One process of two; rank 1 has the faults."""
    store = f"file://{folder / 'store'}"
    dist.init_process_group("gloo", init_method=store, rank=rank, world_size=2)
    own = own_step(rank)
    found: dict[str, object] = {}
    found["poison"] = error_of(make_module(), poisoned(own) if rank == 1 else own)
    sharded = make_module(tie_embeddings=False)
    mesh = init_device_mesh("cpu", (2,))
    for part in (*sharded.model.model.layers, sharded.model.model, sharded.model.lm_head):
        fully_shard(part, mesh=mesh)
    found["poison_sharded"] = error_of(sharded, poisoned(own) if rank == 1 else own)
    largest = max(sum(s.num_tokens for s in b.spans.values()) for b in own if "preferred" in b.spans)
    module = hungry(largest - 1 if rank == 1 else ENOUGH)
    found["split"] = module.compute_gradient(own)["split_batches"]
    found["no_room"] = error_of(hungry(1 if rank == 1 else ENOUGH), own)
    (folder / f"{rank}.json").write_text(json.dumps(found), "utf-8")
    torch.save(flat_gradient(module.model), folder / f"{rank}.pt")
    dist.barrier()
    dist.destroy_process_group()
    os._exit(0)  # the threads of gloo that wind down now and then abort an orderly exit


@pytest.mark.slow
def test_two_ranks_decide_alike(tmp_path: Path):
    mp.spawn(on_a_rank, args=(tmp_path,), nprocs=2)
    first, second = (json.loads((tmp_path / f"{rank}.json").read_text("utf-8")) for rank in (0, 1))
    assert first == second
    for case in ("poison", "poison_sharded"):
        assert first[case].startswith("NotFiniteError: the loss of the term 'response' is")
    assert first["split"] >= 1
    assert first["no_room"].startswith("MemoryError: rank 1: out of memory in one half")
    alone = make_module()
    alone.compute_gradient(pack(RECORDS, HAD, LARGE, pad_id=0))
    for rank in (0, 1):
        gradient = torch.load(tmp_path / f"{rank}.pt")
        assert relative_error(gradient, flat_gradient(alone.model)) < 1e-5


def test_a_rank_of_a_sharded_model_does_not_begin_anew():
    calls = []

    def work(batches):
        calls.append(len(batches))
        raise DoesNotFitError(0, "CUDA out of memory")

    with pytest.raises(MemoryError, match=r"work in step.*lower data\.max_tokens below \d+.*CUDA"):
        run_once(own_step(0), work)
    assert len(calls) == 1
