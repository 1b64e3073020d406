"""The engine on servers against a real local process: answers, faults, several replicas, lost weights."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
import torch
from completion_server import MAX_MODEL_LEN, VOCAB, table_logprobs
from server_engine import EOS, GREEDY, PROMPTS, QUICK, assert_greedy, engine_on
from server_process import MODEL, ServerProcess, free_port

from had.engines.base import EngineFailure, EngineUnavailableError, Generation, SamplingParams
from had.engines.vllm_replica import Patience, Replica, wait_until_healthy
from had.engines.vllm_servers import VLLMServers
from had.engines.vllm_transfer import FolderTransfer, NCCLTransfer


def test_ids_and_logprobs_are_taken_as_returned(server: ServerProcess) -> None:
    assert_greedy(engine_on(server).generate(PROMPTS, GREEDY, [0] * 4))


def test_what_a_server_tells_of_its_prefix_cache_is_counted(server: ServerProcess) -> None:
    engine = engine_on(server)
    answers = engine.generate(PROMPTS, GREEDY, [0] * 4)
    told = [len(prompt) for prompt in PROMPTS if len(prompt) % 2]
    assert (engine.usage.tokens_read, engine.usage.tokens_cached) == (sum(told), sum(n // 2 for n in told))
    lengths = [len(answer.ids) for answer in answers if isinstance(answer, Generation)]
    assert (engine.usage.tokens_generated, engine.usage.steps) == (sum(lengths), max(lengths))


def test_the_seed_decides(servers: list[ServerProcess]) -> None:
    params, engine = SamplingParams(1.0, 30), engine_on(*servers)
    first, again, other = engine.generate([PROMPTS[0]] * 3, params, [7, 7, 8])
    assert isinstance(first, Generation) and isinstance(other, Generation)
    assert first == again
    assert first.ids != other.ids


def test_scores_and_logprobs_of_responses(servers: list[ServerProcess]) -> None:
    engine = engine_on(*servers)
    responses = [[9, 7, 3], [], [39], list(range(30))]
    scores = engine.score(PROMPTS, responses, top_k=6)
    logprobs = engine.logprobs(PROMPTS, responses)
    for prompt, response, score, found in zip(PROMPTS, responses, scores, logprobs, strict=True):
        lasts = [*prompt[-1:], *response][: len(response)]
        rows = [table_logprobs(last) for last in lasts]
        assert found == pytest.approx([row[token] for row, token in zip(rows, response, strict=True)])
        best = [sorted(range(VOCAB), key=lambda token, row=row: -row[token])[:6] for row in rows]
        assert [list(ids) for ids in score.ids] == best
        for values, row, ids in zip(score.logprobs, rows, best, strict=True):
            assert values == pytest.approx([row[token] for token in ids])


def test_requests_that_cannot_be_answered_fail_alone(server: ServerProcess) -> None:
    engine = engine_on(server)
    assert engine.max_context_tokens == MAX_MODEL_LEN - 1
    answers = engine.generate([[5] * 60, [], [VOCAB + 3], [5]], GREEDY, [0] * 4)
    assert [type(answer) for answer in answers] == [EngineFailure, EngineFailure, EngineFailure, Generation]
    assert "64 tokens" in str(answers[0])
    assert "empty" in str(answers[1])
    assert "HTTP 400" in str(answers[2]) and "the prompt is wrong" in str(answers[2])
    with pytest.raises(ValueError, match=r"request 0: .*the prompt is wrong"):
        engine.logprobs([[VOCAB + 3]], [[5]])
    with pytest.raises(ValueError, match="top_k: expected 1 to 64"):
        engine.score([[5]], [[5]], top_k=65)


def test_prompts_that_begin_alike_go_to_the_same_replica(servers: list[ServerProcess]) -> None:
    engine = engine_on(*servers)
    first, second = [5, 9, 7], [30, 9, 7]
    for turn in range(4):
        engine.generate([[*second, turn], [*first, turn]], GREEDY, [0, 0])
    servers[0].inject(delay_s=60)  # it alone knows `first`
    patience = Patience(request_timeout_s=0.2, budget_s=0.5, first_pause_s=0.02, max_pause_s=10)
    engine = engine_on(*servers, patience=patience)
    before = servers[0].seen()["completions"]
    engine.generate([[*second, 4], [*first, 4]], GREEDY, [0, 0])  # answered by the other after one try
    assert servers[0].seen()["completions"] == before + 1


def bias_of(version: int) -> torch.Tensor:
    return torch.linspace(-3, 3, VOCAB).roll(version * 7)


def test_weights_reach_every_replica_and_old_prefixes_are_forgotten(
    servers: list[ServerProcess], tmp_path: Path
) -> None:
    engine = engine_on(*servers, transfer=FolderTransfer(tmp_path))
    for version in (1, 2, 3):
        engine.load_weights(version, {"bias": bias_of(version), "tied": bias_of(version)})
        assert engine.version == version
        assert_greedy(engine.generate(PROMPTS, GREEDY, [0] * 4), tuple(bias_of(version).tolist()))
    assert [path.name for path in tmp_path.iterdir()] == ["version_00003"]
    sync = ["/collective_rpc", "/reset_prefix_cache", "/update_weight_version"]
    for server in servers:
        assert sorted(server.seen()["calls"]) == sorted(sync * 3)


@pytest.mark.parametrize("is_during_a_call", [False, True])
def test_a_restarted_server_gets_the_weights_again(
    server: ServerProcess, tmp_path: Path, is_during_a_call: bool
) -> None:
    engine = engine_on(server, transfer=FolderTransfer(tmp_path))
    engine.load_weights(4, {"bias": bias_of(4)})
    server.kill()
    if is_during_a_call:
        threading.Timer(1.0, lambda: server.start(wait=False)).start()
    else:
        server.start()  # nothing was asked meanwhile: no request has failed
    assert_greedy(engine.generate(PROMPTS, GREEDY, [0] * 4), tuple(bias_of(4).tolist()))
    assert server.seen()["calls"].count("/collective_rpc") == 1


def test_weights_that_cannot_be_sent_again_stop_the_run(server: ServerProcess) -> None:
    engine = engine_on(server, transfer=NCCLTransfer())
    engine.follow((3, "run/3"))  # another rank has sent them
    with pytest.raises(EngineUnavailableError, match=r"lost the weights of policy version 3.*resume="):
        engine.generate(PROMPTS, GREEDY, [0] * 4)


def test_a_busy_server_does_not_keep_old_prefixes(server: ServerProcess, tmp_path: Path) -> None:
    patience = Patience(budget_s=1, first_pause_s=0.02, max_pause_s=0.1)
    engine = engine_on(server, transfer=FolderTransfer(tmp_path), patience=patience)
    server.inject(is_busy=True)
    with pytest.raises(EngineUnavailableError, match="prefixes belong to the old weights"):
        engine.load_weights(1, {"bias": bias_of(1)})
    with pytest.raises(ValueError, match=r"engine\.student\.transfer"):
        engine_on(server).load_weights(1, {"bias": bias_of(1)})


def test_servers_sleep_and_wake(servers: list[ServerProcess]) -> None:
    engine = engine_on(servers[0], sleeps=True)
    engine.sleep()
    engine.sleep()
    assert_greedy(engine.generate(PROMPTS, GREEDY, [0] * 4))
    engine.generate(PROMPTS, GREEDY, [0] * 4)
    assert servers[0].seen()["calls"] == ["/sleep", "/wake_up"]
    awake = engine_on(servers[1])
    awake.sleep()
    assert servers[1].seen()["calls"] == []


def test_another_model_or_context_is_refused(server: ServerProcess) -> None:
    with pytest.raises(ValueError, match=r"serve 'Qwen/Qwen3-8B', it serves \['table-model'\]"):
        VLLMServers([server.url], "Qwen/Qwen3-8B", EOS, patience=QUICK)
    VLLMServers([server.url], "/another/place", EOS, patience=QUICK, served_model=MODEL)
    with pytest.raises(ValueError, match="--max-model-len 101"):
        engine_on(server, max_context_tokens=100)
    assert engine_on(server, max_context_tokens=30).max_context_tokens == 30


def test_bad_arguments_are_named() -> None:
    for urls, message in (
        ([], "one or more"),
        (["a", "a"], "different"),
        (["localhost:1"], "http://HOST:PORT"),
    ):
        with pytest.raises(ValueError, match=message):
            VLLMServers(urls, MODEL, EOS, patience=QUICK)
    with pytest.raises(ValueError, match="eos_ids"):
        VLLMServers(["http://127.0.0.1:1"], MODEL, [])
    with pytest.raises(ValueError, match="budget_s: expected more than 0"):
        Patience(budget_s=0)


def test_pauses_double_up_to_the_longest() -> None:
    patience = Patience(first_pause_s=0.5, max_pause_s=3)
    assert [patience.pause_s(num) for num in (1, 2, 3, 4, 5, 500)] == [0.5, 1, 2, 3, 3, 3]


def test_the_health_check_waits_for_a_start_and_tells_of_none() -> None:
    late = ServerProcess()
    starting = threading.Timer(0.7, lambda: late.start(wait=False))
    starting.start()
    wait_until_healthy(Replica(late.url, QUICK), timeout_s=20)
    starting.join()
    late.kill()
    nobody = Replica(f"http://127.0.0.1:{free_port()}", QUICK)
    with pytest.raises(EngineUnavailableError, match=r"not healthy within 0\.3 s.*Connect.*src/serve"):
        wait_until_healthy(nobody, timeout_s=0.3)
    with pytest.raises(EngineUnavailableError, match="its process has ended"):
        wait_until_healthy(nobody, timeout_s=60, is_alive=lambda: False)
