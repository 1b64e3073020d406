"""A method and a loss that live outside the package: Hydra's search path and the Python path find them."""

from __future__ import annotations

import pytest
from method_world import ROOT, train

LOSS = '''
"""Length-blind imitation: the summed log-probability of the teacher's response."""

from had.losses.reduce import connected_zero, token_logprobs
from had.losses.term import Term


class SummedNLL(Term):
    """The NLL of all response tokens, divided by the number of records."""

    def __init__(self, scale: float = 1.0) -> None:
        super().__init__("summed", "records", ("response",))
        self.scale = scale

    def __call__(self, spans, logits):
        if not self.has_units(spans):
            return connected_zero(logits)
        return -self.scale * token_logprobs(spans["response"], logits["response"]).sum()
'''
METHOD = """
defaults:
  - sopd
  - _self_
name: summed
losses:
  - {_target_: my_losses.SummedNLL, scale: 0.5}
columns: [loss_summed]
"""


def test_a_method_from_outside_trains(world, tmp_path, monkeypatch):
    (tmp_path / "my_losses.py").write_text(LOSS)
    (tmp_path / "configs" / "method").mkdir(parents=True)
    (tmp_path / "configs" / "method" / "summed.yaml").write_text(METHOD)
    monkeypatch.syspath_prepend(tmp_path)
    assembly = world.assembly(
        tmp_path / "run", f"hydra.searchpath=[file://{tmp_path / 'configs'}]", "method=summed"
    )
    result = train(assembly)
    assert all(step["loss_summed"] > 0 and step["grad_norm_total"] > 0 for step in result.steps)
    header, first, *_ = (tmp_path / "run" / "updates.csv").read_text().splitlines()
    assert float(first.split(",")[header.split(",").index("loss_summed")]) == result.steps[0]["loss_summed"]


def test_the_guide_shows_what_this_test_runs():
    guide = (ROOT / "experiments" / "methods" / "README.md").read_text()
    if "Add a loss" not in guide:
        pytest.fail("experiments/methods/README.md: expected the guide 'Add a loss'")
    assert LOSS.strip() in guide and METHOD.strip() in guide
