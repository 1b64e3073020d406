"""The actor that samples from an engine hands prompts, seeds and limits through and keeps the order."""

from __future__ import annotations

from collections.abc import Sequence

from char_tokenizer import reply_ids
from had.engines.base import EngineFailure, Generation, SamplingParams
from had.rollout.actor import Answer, EngineActor, Request
from scripted_actors import char_renderer


class RecordingEngine:
    """Echoes the seed; fails for odd ones."""

    max_context_tokens, version = 100, 0

    def generate(
        self, prompts: Sequence[Sequence[int]], params: SamplingParams, seeds: Sequence[int]
    ) -> list[Generation | EngineFailure]:
        self.asked = (list(prompts), params, list(seeds))
        results: list[Generation | EngineFailure] = []
        for seed in seeds:
            ids = reply_ids(f"Thought: x\nAction: go to desk {seed}")
            is_odd = seed % 2 == 1
            results.append(EngineFailure("odd") if is_odd else Generation(ids, (-0.5,) * len(ids), True))
        return results


def test_engine_actor() -> None:
    engine, params = RecordingEngine(), SamplingParams(0.4, 20)
    actor = EngineActor(engine, char_renderer(), params, name="teacher")  # type: ignore[arg-type]
    answers = actor.act([Request((seed, seed), seed, f"task {seed}", 0) for seed in (4, 7, 2)])
    assert engine.asked == ([(4, 4), (7, 7), (2, 2)], params, [4, 7, 2])
    first, failure, last = answers
    assert isinstance(first, Answer) and isinstance(last, Answer) and isinstance(failure, EngineFailure)
    assert (first.response.action, last.response.action) == ("go to desk 4", "go to desk 2")
    assert first.actor == last.actor == "teacher"
    assert first.response.ids == reply_ids("Thought: x\nAction: go to desk 4")
    assert first.response.logprobs == (-0.5,) * len(first.response.ids) and first.response.is_complete
