"""Every method and ablation trains three updates on household games; the teacher is asked what the table says."""

from __future__ import annotations

import csv
import json
import math

import pytest
import torch
from method_world import NUM_UPDATES, ROOT, parameters, train

METHODS = sorted(path.stem for path in (ROOT / "configs" / "method").glob("*.yaml"))


@pytest.mark.parametrize("method", METHODS)
def test_trains_three_updates(world, tmp_path, method):
    assembly = world.assembly(tmp_path, f"method={method}")
    before = parameters(assembly)
    steps = train(assembly)
    assert len(steps) == NUM_UPDATES
    assert all(math.isfinite(value) for step in steps for value in step.values())
    assert all(step["grad_norm_total"] > 0 for step in steps)
    after = parameters(assembly)
    assert torch.isfinite(after).all() and (after - before).abs().max() > 1e-4
    with open(tmp_path / "updates.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert all(row[name] != "" for row in rows for name in assembly.config.method.columns)
