"""Updates whose loss or gradient is not finite: skipped, counted, and when they end the run."""

from __future__ import annotations

import copy
import json
import logging
import math
from dataclasses import replace
from pathlib import Path

import lightning
import pytest
import torch

from faulty_terms import InfiniteSlope
from had.batch import TokenBatch
from had.data.packing import pack
from had.faults.batch_dump import read_batches
from had.faults.skipped_updates import NotFiniteError, SkippedUpdates
from had.losses.response_nll import ResponseNLL
from had.module import DistillationModule
from step_by_hand import HAD, fit, flat_gradient, flat_parameters, make_module, random_records

Step = list[TokenBatch]


def good(seed: int) -> Step:
    return pack(random_records(12, seed), HAD, 150, pad_id=0)


def bad(seed: int) -> Step:
    """A label with an infinite weight in the last micro-batch that has responses."""
    step = good(seed)
    index = max(i for i, batch in enumerate(step) if "response" in batch.spans)
    spans = step[index].spans["response"]
    weights_S = spans.weights_S.clone()
    weights_S[-1] = math.inf
    step[index] = replace(
        step[index], spans={**step[index].spans, "response": replace(spans, weights_S=weights_S)}
    )
    return step


class Watch(lightning.Callback):
    """What an update changes, and its metrics, one entry per update."""

    def __init__(self) -> None:
        self.states: list[tuple[torch.Tensor, dict, dict]] = []
        self.rows: list[dict[str, float]] = []

    def on_train_start(self, trainer, pl_module) -> None:
        self._keep(pl_module)

    def on_train_batch_end(self, trainer, pl_module, *rest) -> None:
        self._keep(pl_module)
        self.rows.append(pl_module.last_step_metrics)

    def _keep(self, module) -> None:
        optimizer = module.optimizers().optimizer.state_dict()["state"]
        schedule = module.lr_schedulers().state_dict()
        kept = flat_parameters(module.model), copy.deepcopy(optimizer), copy.deepcopy(schedule)
        self.states.append(kept)


def run(steps: list[Step], faults: SkippedUpdates | None = None) -> tuple[DistillationModule, Watch]:
    module, watch = make_module(max_grad_norm=1.0, faults=faults), Watch()
    fit(module, [steps], callbacks=[watch])
    return module, watch


def test_skipped_update_changes_nothing_and_counts(caplog):
    with caplog.at_level(logging.WARNING):
        module, watch = run([good(0), bad(1), good(2)])
    (before, optimizer, schedule), (after, optimizer_after, schedule_after) = watch.states[1:3]
    assert torch.equal(before, after) and schedule == schedule_after
    assert optimizer.keys() == optimizer_after.keys()
    for index, state in optimizer.items():
        assert all(torch.equal(value, optimizer_after[index][name]) for name, value in state.items())
    assert [row["update"] for row in watch.rows] == [1, 2, 3] and module.trainer.global_step == 3
    assert [row["skipped_updates"] for row in watch.rows] == [0, 1, 0]
    assert "loss_response" not in watch.rows[1] and math.isfinite(watch.rows[1]["loss_preference"])
    assert "update 2 is skipped" in caplog.text and "'response' is inf" in caplog.text
    # the updates around it are those of a run that never saw it
    alone, _ = run([good(0), good(2)])
    assert torch.equal(flat_parameters(module.model), flat_parameters(alone.model))


def test_only_skipped_updates_in_a_row_stop_the_run(tmp_path: Path):
    steps = [bad(0), bad(1), good(2), bad(3), bad(4), good(5)]
    module, _ = run(steps, SkippedUpdates(tmp_path, limit=3))
    assert module.faults.state_dict() == {"num_skipped": 4, "num_in_a_row": 0}
    assert list(tmp_path.iterdir()) == []


def test_last_batch_is_kept_when_the_run_stops(tmp_path: Path):
    faults = SkippedUpdates(tmp_path / "faults", limit=2)
    with pytest.raises(
        FloatingPointError, match=r"update 3: 2 updates in a row.*The weights are finite"
    ) as end:
        run([good(0), bad(1), bad(2), good(3)], faults)
    path = tmp_path / "faults" / "update_000003.rank0.json"
    assert str(path) in str(end.value)
    told = json.loads(path.read_text("utf-8"))
    assert told["update"] == 3 and "'response' is inf" in told["fault"] and told["weights_not_finite"] == []
    assert told["step"]["loss_response"] == "inf" and math.isfinite(told["step"]["loss_preference"])
    culprits = [part for part in told["micro_batches"] if part["term_sums"]["response"] == "inf"]
    assert len(culprits) == 1 and set(culprits[0]["records"]) < set(told["record_ids"])
    assert told["record_ids"] == [record.id for record in random_records(12, 2)]


def test_kept_batch_can_be_taken_again(tmp_path: Path):
    with pytest.raises(FloatingPointError):
        run([bad(1)], SkippedUpdates(tmp_path, limit=1))
    kept = read_batches(tmp_path / "update_000001.rank0")
    with pytest.raises(NotFiniteError, match="'response' is inf"):
        make_module().compute_gradient(kept)
    # healed, it is the batch that it was before
    healed = [
        replace(
            batch,
            spans={
                role: replace(spans, weights_S=torch.ones_like(spans.weights_S))
                for role, spans in batch.spans.items()
            },
        )
        for batch in kept
    ]
    mine, expected = make_module(), make_module()
    assert mine.compute_gradient(healed) == expected.compute_gradient(good(1))
    assert torch.equal(flat_gradient(mine.model), flat_gradient(expected.model))


@pytest.mark.parametrize("where", ["lm_head", "layers.1.mlp"])
def test_weights_that_are_not_finite_are_named(tmp_path: Path, where: str):
    module = make_module(faults=SkippedUpdates(tmp_path, limit=1), tie_embeddings=False)
    name, weight = next(pair for pair in module.model.named_parameters() if where in pair[0])
    with torch.no_grad():
        weight[3] = math.nan
    with pytest.raises(FloatingPointError, match=rf"1 weights are not finite themselves \({name}\)"):
        fit(module, [[good(0)]])


def test_finite_loss_with_an_infinite_gradient_names_the_term():
    module = make_module([ResponseNLL(), InfiniteSlope()])
    with pytest.raises(
        NotFiniteError, match=r"the gradient norm of the term 'preference' is (nan|inf)"
    ) as end:
        module.compute_gradient(good(0))
    assert math.isfinite(end.value.metrics["loss_preference"])
    assert all(parameter.grad is None for parameter in module.model.parameters())


def test_counts_go_on_with_the_checkpoint():
    first, second = make_module(), make_module()
    first.faults.load_state_dict({"num_skipped": 5, "num_in_a_row": 2})
    checkpoint: dict = {}
    first.on_save_checkpoint(checkpoint)
    second.on_load_checkpoint(checkpoint)
    assert (second.faults.num_skipped, second.faults.num_in_a_row) == (5, 2)


def test_limit_is_checked():
    with pytest.raises(ValueError, match=r"faults\.limit: expected >= 1"):
        SkippedUpdates(limit=0)
