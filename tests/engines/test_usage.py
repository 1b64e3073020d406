"""The counters of engines against counts by hand."""

from __future__ import annotations

import random
from types import SimpleNamespace

import pytest

from had.engines.base import EngineFailure, Generation, SamplingParams
from had.engines.hf import HFEngine
from had.engines.usage import EngineMeter, EngineUsage
from had.models.tiny import make_qwen3

VOCAB = 101
FIRST = [random.Random(0).randrange(2, VOCAB) for _ in range(60)]


@pytest.fixture
def engine() -> HFEngine:
    model = make_qwen3(VOCAB, hidden=32, layers=2, heads=4, kv_heads=2, head_dim=8, intermediate=48)
    return HFEngine(model, [1], 256)


def test_generated_tokens_and_steps(engine: HFEngine):
    prompts = [[row, *FIRST[:20]] for row in range(2, 9)]
    replies = engine.generate(prompts, SamplingParams(1.0, 12), list(range(7)))
    lengths = [len(reply.ids) for reply in replies if isinstance(reply, Generation)]
    assert engine.usage.tokens_generated == sum(lengths)
    assert engine.usage.steps == max(lengths)
    assert engine.usage.busy_s > 0 and engine.usage.tokens_scored == 0


def test_steps_of_batches_one_after_the_other_add_up(engine: HFEngine):
    slow = HFEngine(engine._model, [1], 256, max_batch_tokens=40)  # room for one row at a time
    prompts = [[row, *FIRST[:20]] for row in range(2, 6)]
    replies = slow.generate(prompts, SamplingParams(1.0, 12), list(range(4)))
    total = sum(len(reply.ids) for reply in replies if isinstance(reply, Generation))
    assert slow.usage.steps == slow.usage.tokens_generated == total


def test_what_a_prompt_shares_with_an_earlier_one_is_cached(engine: HFEngine):
    one_token = SamplingParams(0.0, 1)
    engine.generate([FIRST[:40]], one_token, [0])
    assert (engine.usage.tokens_read, engine.usage.tokens_cached) == (40, 0)
    engine.generate([FIRST], one_token, [0])  # begins with the 40 tokens
    assert (engine.usage.tokens_read, engine.usage.tokens_cached) == (100, 40)
    engine.generate([[VOCAB - 1, *FIRST]], one_token, [0])  # begins otherwise
    assert (engine.usage.tokens_read, engine.usage.tokens_cached) == (161, 40)
    engine.load_weights(1, engine._model.state_dict())  # forgets
    engine.generate([FIRST], one_token, [0])
    assert (engine.usage.tokens_read, engine.usage.tokens_cached) == (221, 40)


def test_scored_tokens_are_those_of_the_responses(engine: HFEngine):
    engine.score([FIRST[:10], FIRST[:20]], [FIRST[20:25], []], 4)
    engine.logprobs([FIRST[:10]], [FIRST[30:37]])
    assert engine.usage.tokens_scored == 5 + 7
    assert engine.usage.tokens_generated == engine.usage.steps == 0


def test_requests_that_fail_count_nothing_but_time(engine: HFEngine):
    (answer,) = engine.generate([[]], SamplingParams(1.0, 4), [0])
    assert isinstance(answer, EngineFailure)
    with pytest.raises(ValueError, match="request 0"):
        engine.logprobs([[]], [[5]])
    busy = engine.usage.busy_s
    assert engine.usage == EngineUsage(busy_s=busy) and busy > 0


def test_a_meter_adds_up_the_engines_that_count():
    engines = [
        SimpleNamespace(usage=EngineUsage(1.5, 10, 2)),
        object(),
        SimpleNamespace(usage=EngineUsage(0.5, 4, 1)),
    ]
    counts = EngineMeter(engines)()
    assert (counts["busy_s"], counts["tokens_generated"], counts["steps"]) == (2.0, 14, 3)
    assert EngineMeter([object()])() == {}
