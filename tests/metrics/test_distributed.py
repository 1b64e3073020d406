from datetime import timedelta

import pytest
import torch
from episode_maker import random_episodes, record
from torch import distributed, multiprocessing
from torchmetrics.utilities import dim_zero_sum

from had.metrics.distributed import Disagreement, HarnessUtilization, StallMetric, SuccessMetric
from had.metrics.functional import evaluate_metrics

CLASSES = (SuccessMetric, HarnessUtilization, StallMetric)
SPLITS = {"uneven": (9, 23), "empty": (0, 32), "both_empty": (0, 0)}
RECORDS = [record(i / 17, "look", "look" if i % 3 else "help") for i in range(17)]


def pooled(count):
    return evaluate_metrics(random_episodes(7, count))


def approx(metrics):
    return {
        name: {key: value if value is None else pytest.approx(value) for key, value in estimate.items()}
        for name, estimate in metrics.items()
    }


def compute(rank, counts):
    """All metrics when each rank holds its own part of the episodes."""
    episodes = random_episodes(7, sum(counts))
    start = sum(counts[:rank])
    mine = episodes[start : start + counts[rank]]
    results = {}
    for kind in CLASSES:
        metric = kind()
        for first in range(0, max(len(mine), 1), 4):  # several updates, one of them empty on an empty rank
            metric.update(mine[first : first + 4])
        results |= metric.compute()
    return results


def work(rank, store, results_folder):
    distributed.init_process_group(
        "gloo", init_method=f"file://{store}", rank=rank, world_size=2, timeout=timedelta(seconds=60)
    )
    try:
        found = {name: compute(rank, counts) for name, counts in SPLITS.items()}
        disagreement = Disagreement()
        disagreement.update(RECORDS if rank else [])
        found["disagreement"] = disagreement.compute()
        torch.save(found, f"{results_folder}/{rank}.pt")
    finally:
        distributed.destroy_process_group()


def test_two_processes_equal_pooled_counts(tmp_path):
    # one new process beside this one: importing torch is most of the test's time
    other = multiprocessing.get_context("spawn").Process(target=work, args=(1, tmp_path / "store", tmp_path))
    other.start()
    work(0, tmp_path / "store", tmp_path)
    other.join(60)
    assert other.exitcode == 0
    expected = {name: approx(pooled(sum(counts))) for name, counts in SPLITS.items()}
    alone = Disagreement()
    alone.update(RECORDS)
    expected["disagreement"] = approx(alone.compute())
    for rank in range(2):
        assert torch.load(tmp_path / f"{rank}.pt") == expected


@pytest.mark.parametrize("count", [1, 40])
def test_one_process_equals_the_functional_part(count):
    assert compute(0, (count,)) == approx(pooled(count))


def test_reset_forgets():
    metric = SuccessMetric()
    metric.update(random_episodes(1, 5))
    metric.reset()
    metric.update(random_episodes(2, 6))
    assert metric.compute()["sr"]["count"] == 6


def test_all_states_are_sums():
    for kind in (*CLASSES, Disagreement):
        assert set(kind()._reductions.values()) == {dim_zero_sum}
