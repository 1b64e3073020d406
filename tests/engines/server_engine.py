"""An engine on the test servers, and what it must answer."""

from __future__ import annotations

import pytest
from completion_server import NO_BIAS, VOCAB, table_logprobs
from server_process import MODEL, ServerProcess

from had.engines.base import EngineFailure, Generation, SamplingParams
from had.engines.vllm_replica import Patience
from had.engines.vllm_servers import VLLMServers

EOS = [1, 2]
GREEDY = SamplingParams(0.0, 8)
QUICK = Patience(request_timeout_s=5, budget_s=20, first_pause_s=0.02, max_pause_s=0.1, startup_timeout_s=20)
PROMPTS = [[5, 9, 7], [5, 9, 8, 11], [20], [5, 9, 30, 31, 32]]


def engine_on(*processes: ServerProcess, **arguments: object) -> VLLMServers:
    arguments = {"patience": QUICK, **arguments}
    return VLLMServers([process.url for process in processes], MODEL, EOS, **arguments)  # type: ignore[arg-type]


def expected_greedy(prompt: list[int], num: int = 8, bias: tuple[float, ...] = NO_BIAS) -> Generation:
    ids, logprobs = list(prompt), []
    while len(logprobs) < num and not (logprobs and ids[-1] in EOS):
        row = table_logprobs(ids[-1], bias)
        ids.append(row.index(max(row)))
        logprobs.append(row[ids[-1]])
    return Generation(tuple(ids[len(prompt) :]), tuple(logprobs), ids[-1] in EOS)


def assert_greedy(
    answers: list[Generation | EngineFailure], bias: tuple[float, ...] = (0.0,) * VOCAB
) -> None:
    for prompt, answer in zip(PROMPTS, answers, strict=True):
        assert isinstance(answer, Generation), answer
        expected = expected_greedy(prompt, bias=bias)
        assert (answer.ids, answer.is_complete) == (expected.ids, expected.is_complete)
        assert answer.logprobs == pytest.approx(expected.logprobs, abs=1e-6)
