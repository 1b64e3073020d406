"""Micro-batches that do not fit into memory: halved with the same gradient, or an error that teaches."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from faulty_terms import NO_MACHINE_HAS, HungryBackward
from had.data.packing import pack
from had.faults.out_of_memory import is_out_of_memory
from had.losses.response_nll import ResponseNLL
from step_by_hand import HAD, flat_gradient, make_module, random_records, relative_error

LARGE = 10_000  # padded tokens: one micro-batch for each combination of roles


def num_scored(batch) -> int:
    return sum(spans.num_tokens for spans in batch.spans.values())


def test_the_allocator_is_recognised():
    with pytest.raises(RuntimeError) as full:
        torch.empty(NO_MACHINE_HAS)
    assert is_out_of_memory(full.value)
    assert is_out_of_memory(torch.OutOfMemoryError("CUDA out of memory")) and is_out_of_memory(MemoryError())
    assert not is_out_of_memory(RuntimeError("shape mismatch")) and not is_out_of_memory(ValueError())


def test_halves_give_what_the_whole_gives():
    for whole in pack(random_records(24), HAD, LARGE, pad_id=0):
        halves = whole.halves()
        assert sum(half.num_rows for half in halves) == whole.num_rows
        assert sum(half.size for half in halves) <= whole.size
        assert sorted(name for half in halves for name in half.own_record_ids()) == whole.own_record_ids()
        expected, found = make_module(), make_module()
        metrics = expected.compute_gradient([whole])
        assert found.compute_gradient(halves) == pytest.approx(metrics, rel=1e-5)
        assert relative_error(flat_gradient(found.model), flat_gradient(expected.model)) < 1e-5


def test_a_row_is_not_split():
    with pytest.raises(ValueError, match="a row is not split"):
        pack(random_records(1), HAD, LARGE, pad_id=0)[0].halves()


@pytest.mark.parametrize("max_tokens", [300, LARGE])
def test_step_is_begun_anew_with_halves(max_tokens: int, caplog):
    """The failure comes in the second backward pass, when the first has left a gradient behind."""
    step = pack(random_records(24), HAD, max_tokens, pad_id=0)
    largest = max(num_scored(batch) for batch in step if "preferred" in batch.spans)
    expected, module = make_module(), make_module([ResponseNLL(), HungryBackward(most=largest - 1)])
    metrics = expected.compute_gradient(step)
    with caplog.at_level(logging.WARNING):
        found = module.compute_gradient(step)
    assert found.pop("split_batches") >= 1 > metrics.pop("split_batches")
    assert found == pytest.approx(metrics, rel=1e-5)
    assert relative_error(flat_gradient(module.model), flat_gradient(expected.model)) < 1e-5
    assert "Lower data.max_tokens below" in caplog.text


def test_a_half_that_does_not_fit_ends_the_run():
    module = make_module([ResponseNLL(), HungryBackward(most=5)])
    step = pack(random_records(24), HAD, LARGE, pad_id=0)
    with pytest.raises(
        MemoryError, match=r"rank 0: out of memory in one half.*data\.max_tokens.*lower it to"
    ):
        module.compute_gradient(step)
    assert all(parameter.grad is None for parameter in module.model.parameters())


def test_a_single_record_that_does_not_fit_is_named():
    module = make_module([ResponseNLL(), HungryBackward(most=5)])
    with pytest.raises(MemoryError, match=r"one record \(\d+ tokens, record r000\).*prompt\.history_turns"):
        module.compute_gradient(pack(random_records(1), HAD, LARGE, pad_id=0))


def test_other_errors_are_not_touched():
    class Broken(ResponseNLL):
        def __call__(self, spans, logits):
            raise RuntimeError("a bug")

    with pytest.raises(RuntimeError, match="a bug"):
        make_module([Broken(), HungryBackward(most=LARGE)]).compute_gradient(
            pack(random_records(2), HAD, LARGE, pad_id=0)
        )


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc and RLIMIT_AS, that is Linux")
def test_a_process_with_little_memory_gets_the_same_gradient():
    """A real limit, between what the halves need and what the whole needs."""
    program = Path(__file__).with_name("step_in_little_memory.py")
    # freed memory goes back to the system at once, and one arena serves all threads
    allocator = {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_ARENA_MAX": "1"}
    environment = {**os.environ, **allocator, "PYTHONPATH": str(program.parents[1]), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, str(program)], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert "out of memory in micro-batch 1 of 1" in done.stderr
    assert "split 1" in done.stdout
    assert float(done.stdout.split()[-1]) < 1e-5
