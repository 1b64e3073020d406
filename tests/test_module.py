"""The optimizer step against a slow reference, over micro-batches, over ranks, and on the edge cases."""

from __future__ import annotations

import copy
import math
import os
import random
from pathlib import Path

import lightning
import pytest
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from lightning.pytorch.strategies import DDPStrategy
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

from had.data.layouts import ActionPairLayout, PositiveActionLayout, ResponseLayout
from had.data.packing import pack
from had.losses.balance import GradientNormBalance, WeightedSum
from had.losses.positive_action import PositiveAction
from had.losses.response_nll import ResponseNLL
from had.records import Record, Verdict
from step_by_hand import (
    HAD,
    fit,
    flat_gradient,
    flat_parameters,
    make_module,
    only,
    random_records,
    relative_error,
)

UPDATE_COLUMNS = {
    *("update", "lr", "loss_response", "loss_preference", "grad_norm_response", "grad_norm_preference"),
    *("balance", "grad_norm_total", "num_records", "num_pairs", "num_accepted", "num_differing", "tokens"),
}


class Reference:
    """HAD's step in float64, a sequence at a time, straight from the formulas."""

    def __init__(self, model: torch.nn.Module) -> None:
        self.model = copy.deepcopy(model).double()

    def mean_logprob(self, context: tuple[int, ...], run: tuple[int, ...]) -> torch.Tensor:
        ids = torch.tensor([[*context, *run]])
        logprobs = self.model(input_ids=ids).logits[0].double().log_softmax(-1)
        return sum(logprobs[len(context) + j - 1, token] for j, token in enumerate(run)) / len(run)

    def step(self, records: list[Record], rho: float = 0.5, beta: float = 0.5) -> dict[str, float]:
        responses, pairs = [], []
        for record in records:
            labels = record.labels
            responses.append(-self.mean_logprob(record.prompt_ids, labels.positive.ids))
            actions = (labels.positive.action, labels.negative.action, record.student.action)
            if labels.verdict is Verdict.VALID and None not in actions:
                context = record.prompt_ids + record.student.reasoning_ids
                good = self.mean_logprob(context, labels.positive.action_ids)
                bad = self.mean_logprob(context, labels.negative.action_ids)
                pairs.append(-torch.log(torch.sigmoid(beta * (good - bad))))
        parameters = list(self.model.parameters())
        d, p = sum(responses) / len(responses), sum(pairs) / len(pairs)
        grad_d = torch.autograd.grad(d, parameters, retain_graph=True)
        grad_p = torch.autograd.grad(p, parameters)
        norm_d = math.sqrt(sum((g**2).sum().item() for g in grad_d))
        norm_p = math.sqrt(sum((g**2).sum().item() for g in grad_p))
        balance = rho * norm_d / norm_p
        for parameter, a, b in zip(parameters, grad_d, grad_p, strict=True):
            parameter.grad = a + balance * b
        return {
            "loss_response": d.item(),
            "loss_preference": p.item(),
            "grad_norm_response": norm_d,
            "grad_norm_preference": norm_p,
            "balance": balance,
            "grad_norm_total": flat_gradient(self.model).norm().item(),
            "num_records": len(records),
            "num_accepted": len(pairs),
        }


@pytest.mark.parametrize("max_tokens", [1, 150, 10_000])
def test_step_equals_the_slow_reference(max_tokens):
    records, module = random_records(18), make_module()
    reference = Reference(module.model)
    expected = reference.step(records)
    metrics = module.compute_gradient(pack(records, HAD, max_tokens, pad_id=0))
    assert {name: metrics[name] for name in expected} == pytest.approx(expected, rel=1e-5)
    assert relative_error(flat_gradient(module.model), flat_gradient(reference.model)) < 1e-5


def test_gradient_is_clipped_to_the_global_norm_and_the_norm_before_is_reported():
    records, module = random_records(12), make_module()
    free = module.compute_gradient(batches := pack(records, HAD, 150, pad_id=0))
    unclipped = flat_gradient(module.model)
    module.max_grad_norm = free["grad_norm_total"] / 3
    assert module.compute_gradient(batches)["grad_norm_total"] == pytest.approx(free["grad_norm_total"])
    assert relative_error(flat_gradient(module.model) * 3, unclipped) < 1e-6


def test_how_records_are_packed_does_not_matter():
    records, module = random_records(24, seed=3), make_module()
    shuffled = random.Random(0).sample(records, len(records))
    results = []
    for order in (records, shuffled):
        for max_tokens in (1, 90, 300, 10_000):
            metrics = module.compute_gradient(pack(order, HAD, max_tokens, pad_id=0))
            results.append((metrics, flat_gradient(module.model)))
    for metrics, gradient in results[1:]:
        assert metrics == pytest.approx(results[0][0], rel=1e-5)
        assert relative_error(gradient, results[0][1]) < 1e-5


def test_without_an_accepted_pair_the_step_is_the_response_gradient_alone():
    records = only(random_records(6), Verdict.NOT_HELD)
    module = make_module()
    metrics = module.compute_gradient(pack(records, HAD, 150, pad_id=0))
    gradient = flat_gradient(module.model)
    assert metrics["num_pairs"] > metrics["num_accepted"] == metrics["loss_preference"] == 0
    assert metrics["balance"] == metrics["grad_norm_preference"] == 0
    response_only = make_module([ResponseNLL()], WeightedSum())
    response_only.compute_gradient(pack(records, [ResponseLayout()], 150, pad_id=0))
    assert relative_error(gradient, flat_gradient(response_only.model)) < 1e-6


def test_equal_pairs_have_log_2_and_exactly_no_gradient():
    records = [r for r in random_records(18) if r.labels.positive == r.labels.negative]
    module = make_module()
    metrics = module.compute_gradient(pack(records, HAD, 150, pad_id=0))
    assert metrics["num_accepted"] == len(records) == 3 and metrics["num_differing"] == 0
    assert metrics["loss_preference"] == pytest.approx(math.log(2))
    assert metrics["grad_norm_preference"] == 0.0 and metrics["balance"] == 0.0


def test_equal_pairs_dilute_the_preference_gradient():
    records = random_records(18)
    differing = [r for r in records if ActionPairLayout()(r).counts["differing"]]
    equal = [r for r in records if r.labels.positive == r.labels.negative][:2]
    module = make_module()
    alone = module.compute_gradient(pack(differing, HAD, 150, pad_id=0))["grad_norm_preference"]
    diluted = module.compute_gradient(pack(differing + equal, HAD, 150, pad_id=0))["grad_norm_preference"]
    assert diluted == pytest.approx(alone * len(differing) / (len(differing) + 2), rel=1e-5)


def test_record_without_boundary_keeps_its_response():
    records = [r for r in random_records(18) if r.student.action is None]
    metrics = make_module().compute_gradient(pack(records, HAD, 150, pad_id=0))
    assert metrics["num_no_boundary"] == len(records) == 3 and metrics["num_pairs"] == 0
    assert metrics["loss_response"] > 0 and metrics["grad_norm_response"] > 0


def test_positive_only_swaps_layout_and_term():
    module = make_module([ResponseNLL(), PositiveAction()])
    metrics = module.compute_gradient(
        pack(random_records(12), [ResponseLayout(), PositiveActionLayout()], 150, pad_id=0)
    )
    assert metrics["loss_preference"] > 0 and metrics["balance"] > 0
    assert metrics["balance"] * metrics["grad_norm_preference"] == pytest.approx(
        0.5 * metrics["grad_norm_response"]
    )


def test_rho_zero_equals_the_response_term_alone_bit_by_bit():
    records = random_records(12)
    had, sopd = make_module(balance=GradientNormBalance(rho=0.0)), make_module([ResponseNLL()], WeightedSum())
    for module in (had, sopd):
        module.compute_gradient(pack(records, HAD, 150, pad_id=0))
    assert torch.equal(flat_gradient(had.model), flat_gradient(sopd.model))


def test_gradient_that_is_not_finite_is_not_left_behind():
    module = make_module()
    with torch.no_grad():
        module.model.get_output_embeddings().weight[3] = math.nan
    with pytest.raises(FloatingPointError, match="the step is not taken"):
        module.compute_gradient(pack(random_records(6), HAD, 150, pad_id=0))
    assert all(parameter.grad is None for parameter in module.model.parameters())


def test_step_without_scored_tokens_is_zero():
    metrics = make_module().compute_gradient(pack(random_records(2), [], 150, pad_id=0))
    assert metrics["grad_norm_total"] == metrics["loss_response"] == 0.0


def test_setup_errors_teach():
    with pytest.raises(ValueError, match="different names"):
        make_module([ResponseNLL(), ResponseNLL()], WeightedSum())
    with pytest.raises(ValueError, match="max_grad_norm"):
        make_module(max_grad_norm=0)


STEPS = [random_records(12, seed) for seed in range(3)]
STEPS_BY_RANK = [[s[:5] for s in STEPS], [s[5:] for s in STEPS[:2]] + [only(STEPS[2][5:], Verdict.NOT_HELD)]]


def test_trainer_takes_one_optimizer_step_per_batch():
    module = make_module(max_grad_norm=1.0)
    before = flat_parameters(module.model)
    fit(module, [[pack(records, HAD, 150, pad_id=0) for records in STEPS]])
    metrics = module.last_step_metrics
    assert metrics["update"] == 3 and metrics["lr"] == pytest.approx(1e-3)
    assert set(metrics).issuperset(UPDATE_COLUMNS)
    assert (flat_parameters(module.model) - before).abs().max() > 1e-4


class KeepMetrics(lightning.Callback):
    """Brings the metrics of the worker process back (as buffers, which the launcher returns)."""

    def on_train_end(self, trainer: lightning.Trainer, pl_module: lightning.LightningModule) -> None:
        values = pl_module.last_step_metrics
        pl_module.register_buffer("kept", torch.tensor(list(values.values()), dtype=torch.float64))


def test_two_ranks_equal_one_process():
    """Uneven ranks: other numbers of records and micro-batches, one without any pair in the last step."""
    single, double = make_module(max_grad_norm=1.0), make_module(max_grad_norm=1.0)
    union = [a + b for a, b in zip(*STEPS_BY_RANK, strict=True)]
    fit(single, [[pack(records, HAD, 150, pad_id=0) for records in union]])
    packed = [
        [pack(records, HAD, max_tokens, pad_id=0) for records in steps]
        for steps, max_tokens in zip(STEPS_BY_RANK, (60, 150), strict=True)
    ]
    double.register_buffer("kept", torch.zeros(len(single.last_step_metrics), dtype=torch.float64))
    fit(
        double,
        packed,
        devices=2,
        strategy=DDPStrategy(start_method="spawn", process_group_backend="gloo"),
        callbacks=[KeepMetrics()],
    )
    expected = torch.tensor(list(single.last_step_metrics.values()), dtype=torch.float64)
    torch.testing.assert_close(double.kept, expected, rtol=1e-5, atol=1e-7)
    assert (flat_parameters(double.model) - flat_parameters(single.model)).abs().max() < 1e-6


def sharded_step(rank: int, folder: Path) -> None:
    """One process of two: a step on sharded parameters; rank 0 writes the metrics and the gradient."""
    store = f"file://{folder / 'store'}"
    dist.init_process_group("gloo", init_method=store, rank=rank, world_size=2)
    module = make_module(max_grad_norm=1.0, tie_embeddings=False)
    mesh = init_device_mesh("cpu", (2,))
    for part in (*module.model.model.layers, module.model.model, module.model.lm_head):
        fully_shard(part, mesh=mesh)
    metrics = module.compute_gradient(pack(STEPS_BY_RANK[rank][2], HAD, (60, 150)[rank], pad_id=0))
    gradient = torch.cat([p.grad.full_tensor().double().flatten() for p in module.model.parameters()])
    if rank == 0:
        torch.save((metrics, gradient), folder / "result.pt")
    dist.barrier()
    dist.destroy_process_group()
    os._exit(0)  # the threads of gloo that wind down now and then abort an orderly exit


def test_sharded_parameters_equal_one_process(tmp_path):
    """FSDP2: norms are global, and ranks with unequal numbers of micro-batches do not wait for ever."""
    mp.spawn(sharded_step, args=(tmp_path,), nprocs=2)
    metrics, gradient = torch.load(tmp_path / "result.pt")
    single = make_module(max_grad_norm=1.0, tie_embeddings=False)
    union = STEPS_BY_RANK[0][2] + STEPS_BY_RANK[1][2]
    assert metrics == pytest.approx(single.compute_gradient(pack(union, HAD, 150, pad_id=0)), rel=1e-5)
    assert relative_error(gradient, flat_gradient(single.model)) < 1e-5
