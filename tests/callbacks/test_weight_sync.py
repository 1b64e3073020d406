"""Weight syncs that work, that hang, and that are broken in ways an engine does not notice itself."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import PreTrainedModel

from had.callbacks.engine_sleep import SleepWhileTraining
from had.callbacks.weight_sync import Probe, WeightSync, WeightSyncError, probe_logprobs, within
from had.engines.base import EngineUnavailableError
from had.engines.hf import HFEngine
from had.models.tiny import make_qwen3

VOCAB = 101
PROBE = Probe(range(2, 30), range(30, 90))


def tiny_model(seed: int = 0, tied: bool = True) -> PreTrainedModel:
    return make_qwen3(
        VOCAB, hidden=32, layers=2, heads=4, kv_heads=2, head_dim=8, intermediate=48, max_positions=256,
        tie_embeddings=tied, seed=seed,
    )  # fmt: skip


class Run:
    """A callback with the trainer and module that its hooks are called with."""

    def __init__(self, engine: Any, **options: Any) -> None:
        self.module, self.datamodule = SimpleNamespace(model=tiny_model(seed=1)), SimpleNamespace()
        self.datamodule.policy_version = 0
        self.datamodule.finish_epoch = self._finish_epoch
        self.sync = WeightSync(engine, PROBE, **options)
        self.trainer = SimpleNamespace(datamodule=self.datamodule)

    def _finish_epoch(self) -> int:
        self.datamodule.policy_version += 1
        return self.datamodule.policy_version

    def start(self) -> None:
        self.sync.on_fit_start(self.trainer, self.module)  # type: ignore[arg-type]

    def round(self, size: float = 0.02) -> None:
        """Change the weights and end the epoch."""
        with torch.no_grad():
            for parameter in self.module.model.parameters():
                parameter.add_(size * torch.randn(parameter.shape))
        self.sync.on_train_epoch_end(self.trainer, self.module)  # type: ignore[arg-type]


def test_the_trainers_logprobs_are_those_of_a_plain_forward() -> None:
    model = tiny_model().train()
    ids = torch.tensor([[*PROBE.prompt_ids, *PROBE.response_ids]])
    with torch.no_grad():
        logprobs = torch.log_softmax(model(ids).logits[0], -1)
    expected = [float(logprobs[27 + i, token]) for i, token in enumerate(PROBE.response_ids)]
    assert probe_logprobs(model, PROBE) == pytest.approx(expected, abs=1e-5)
    assert model.training


def test_a_sync_that_works_passes_and_raises_the_version() -> None:
    run = Run(HFEngine(tiny_model(), [1]))
    run.start()
    for version in (1, 2, 3):
        run.round()
        assert run.sync.engine.version == version


def test_rounds_without_any_change_are_no_mistake() -> None:
    run = Run(HFEngine(tiny_model(), [1]))
    run.start()
    run.round(size=0)
    run.round(size=0)


class BrokenEngine(HFEngine):
    """Reports success whatever it did with the weights."""

    def __init__(self, alter: Callable[[int, dict[str, Tensor]], Mapping[str, Tensor] | None]) -> None:
        super().__init__(tiny_model(tied=False), [1])
        self._alter = alter

    def load_weights(self, version: int, state_dict: Mapping[str, Tensor]) -> None:
        weights = self._alter(version, dict(state_dict))
        if weights is not None:
            super().load_weights(version, {**self._model.state_dict(), **weights})


def only_first(version: int, weights: dict[str, Tensor]) -> Mapping[str, Tensor] | None:
    return weights if version == 0 else None


def without_head(version: int, weights: dict[str, Tensor]) -> Mapping[str, Tensor]:
    return {name: value for name, value in weights.items() if version == 0 or name != "lm_head.weight"}


def without_a_layer(version: int, weights: dict[str, Tensor]) -> Mapping[str, Tensor]:
    return {name: value for name, value in weights.items() if version == 0 or "layers.1.mlp" not in name}


def not_a_number(version: int, weights: dict[str, Tensor]) -> Mapping[str, Tensor]:
    return {name: value * (float("nan") if version else 1.0) for name, value in weights.items()}


@pytest.mark.parametrize("alter", [only_first, without_head, without_a_layer, not_a_number])
def test_a_broken_sync_stops_the_run_with_both_numbers(alter: Any) -> None:
    run = Run(BrokenEngine(alter))
    run.start()
    with pytest.raises(WeightSyncError) as stopped:
        run.round(size=0.2)
    engine = run.sync.engine.logprobs([PROBE.prompt_ids], [PROBE.response_ids])[0]
    trainer = probe_logprobs(run.module.model, PROBE)
    for values, name in ((trainer, "trainer"), (engine, "engine")):
        assert f"{sum(values) / len(values):.6f} ({name})" in str(stopped.value)


def test_weights_that_were_not_loaded_are_noticed_below_the_tolerance() -> None:
    run = Run(BrokenEngine(only_first), tolerance=5.0)
    run.start()
    with pytest.raises(WeightSyncError, match="did not change at all"):
        run.round()


class HangingEngine(HFEngine):
    def load_weights(self, version: int, state_dict: Mapping[str, Tensor]) -> None:
        threading.Event().wait()


def test_a_sync_that_hangs_is_given_up() -> None:
    run = Run(HangingEngine(tiny_model(), [1]), timeout_s=0.2)
    with pytest.raises(WeightSyncError, match=r"load_weights\(0\): expected it within 0.2 s.*resume="):
        run.start()


class GoneEngine(HFEngine):
    def logprobs(self, prompts: Sequence[Any], responses: Sequence[Any]) -> list[tuple[float, ...]]:
        raise EngineUnavailableError("gone")


def test_an_engine_that_is_gone_stops_the_run_with_its_own_words() -> None:
    with pytest.raises(EngineUnavailableError, match="gone"):
        Run(GoneEngine(tiny_model(), [1])).start()


def test_within_returns_and_raises_what_the_action_does() -> None:
    assert within(5, "it", lambda: None) is None
    with pytest.raises(KeyError):
        within(5, "it", lambda: {}["a"])


def test_bad_arguments_are_named() -> None:
    with pytest.raises(ValueError, match="probe: expected a prompt"):
        Probe([], [1])
    with pytest.raises(ValueError, match="tolerance > 0"):
        WeightSync(HFEngine(tiny_model(), [1]), PROBE, tolerance=0)


class Sleeper:
    naps = 0

    def sleep(self) -> None:
        self.naps += 1


def test_only_engines_that_can_sleep_do_so() -> None:
    sleeper = Sleeper()
    callback = SleepWhileTraining([HFEngine(tiny_model(), [1]), sleeper])  # type: ignore[list-item]
    callback.on_train_epoch_start(None, None)  # type: ignore[arg-type]
    assert sleeper.naps == 1
