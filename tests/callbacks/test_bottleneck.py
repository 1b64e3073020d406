"""The warning that names a setting: after the warm-up, over the last rounds, once per phase."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hydra import compose, initialize_config_dir
from hydra.utils import instantiate

from had.callbacks.bottleneck import Bottleneck
from had.callbacks.run_tables import WATCHED

ROOT = Path(__file__).resolve().parents[2]
ADVICE = {"collect": "more slots", "train": "more devices"}


def slow(phase: str, share: float) -> dict[str, float]:
    """A round of ten seconds of which one phase takes a share."""
    return {**dict.fromkeys(("collect", "train", "label"), 0.0), "sync": 10 * (1 - share), phase: 10 * share}


def test_it_speaks_after_the_warm_up_and_only_once():
    watcher = Bottleneck(ADVICE, share=0.6, num_rounds=3, num_warmup=2)
    said = [watcher.note(slow("collect", 0.7)) for _ in range(8)]
    assert [text is not None for text in said] == [False] * 4 + [True] + [False] * 3
    assert said[4] == "collect: 70% of the last 3 rounds (21.0 of 30.0 s). more slots"


def test_the_last_rounds_decide_not_the_warm_up():
    watcher = Bottleneck(ADVICE, share=0.6, num_rounds=2, num_warmup=2)
    shares = [0.99, 0.99, 0.5, 0.65, 0.65, 0.54, 0.67]  # means of two after the warm-up: .575, .65
    said = [watcher.note(slow("train", share)) is not None for share in shares]
    assert said == [False] * 4 + [True, False, False]


def test_every_phase_is_named_once_and_none_without_advice():
    watcher = Bottleneck(ADVICE, num_rounds=1, num_warmup=0)
    phases = ("collect", "label", "train", "collect", "train")
    said = [watcher.note(slow(phase, 0.9)) for phase in phases]
    assert [text and text.partition(":")[0] for text in said] == ["collect", None, "train", None, None]


def test_a_round_of_no_time_is_no_news():
    assert Bottleneck(ADVICE, num_rounds=1, num_warmup=0).note({"collect": 0.0}) is None


@pytest.mark.parametrize("bad", [{"share": 0.0}, {"share": 1.0}, {"num_rounds": 0}, {"num_warmup": -1}])
def test_bad_numbers_are_named(bad: dict[str, float]):
    with pytest.raises(ValueError, match="bottleneck: expected share"):
        Bottleneck(ADVICE, **bad)  # type: ignore[arg-type]


def test_the_configured_advice_covers_all_phases_and_names_the_values_in_force():
    os.environ.setdefault("HAD_ROOT", str(ROOT))
    with initialize_config_dir(str(ROOT / "configs"), version_base="1.3"):
        config = compose("train", ["data.max_tokens=4321", "evaluation.every_num_updates=17"])
    watcher = instantiate(config.bottleneck)
    assert set(watcher.advice) == {"collect", "label", *WATCHED}
    assert "data.max_tokens (now 4321" in watcher.advice["train"]
    assert "evaluation.every_num_updates (now 17)" in watcher.advice["evaluate"]
