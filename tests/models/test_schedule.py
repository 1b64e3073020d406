import math

import pytest
import torch

from had.models.schedule import cosine_with_warmup


def rates(num_updates: int, num_warmup: int) -> list[float]:
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=2.0)
    scheduler = cosine_with_warmup(optimizer, num_updates, num_warmup)
    values = []
    for _ in range(num_updates + 2):
        values.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    return values


def test_linear_warmup_then_half_a_cosine():
    values = rates(num_updates=15, num_warmup=5)
    assert values[:5] == pytest.approx([0.4, 0.8, 1.2, 1.6, 2.0])
    assert values[5] == pytest.approx(2.0)
    assert values[10] == pytest.approx(1.0)
    assert values[14] == pytest.approx(1 + math.cos(math.pi * 0.9))
    assert values[15:] == pytest.approx([0.0, 0.0])


def test_no_warmup_and_a_run_shorter_than_its_warmup():
    assert rates(4, 0)[0] == pytest.approx(2.0)
    assert rates(2, 15)[:2] == pytest.approx([2 / 15, 4 / 15])


def test_errors_teach():
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=2.0)
    with pytest.raises(ValueError, match=r"trainer\.max_steps"):
        cosine_with_warmup(optimizer, 0)
    with pytest.raises(ValueError, match="num_warmup"):
        cosine_with_warmup(optimizer, 10, -1)
