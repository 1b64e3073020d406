"""Servers that fail for real: gone, hanging, overloaded, answering nonsense, one of several dead."""

from __future__ import annotations

import threading
import time

import pytest
from server_engine import GREEDY, PROMPTS, QUICK, assert_greedy, engine_on
from server_process import ServerProcess

from had.engines.base import EngineUnavailableError
from had.engines.vllm_replica import Patience


def test_hiccups_are_tried_again(server: ServerProcess, caplog: pytest.LogCaptureFixture) -> None:
    server.inject(num_failures_left=5)
    engine = engine_on(server)
    assert_greedy(engine.generate(PROMPTS, GREEDY, [0] * 4))
    assert server.seen()["completions"] == 4 + 5
    assert "HTTP 503" in caplog.text and "answers again" in caplog.text


def test_a_request_that_hangs_is_given_up_and_tried_again(server: ServerProcess) -> None:
    server.inject(delay_s=60)
    patience = Patience(request_timeout_s=0.3, budget_s=20, first_pause_s=0.02, max_pause_s=0.1)
    engine = engine_on(server, patience=patience)
    healing = threading.Timer(1.0, lambda: server.inject(delay_s=0))
    healing.start()
    assert_greedy(engine.generate(PROMPTS, GREEDY, [0] * 4))
    assert server.seen()["completions"] > 4


def test_a_server_that_never_answers_in_time_stops_the_run(server: ServerProcess) -> None:
    server.inject(delay_s=60)
    patience = Patience(request_timeout_s=0.2, budget_s=1, first_pause_s=0.02, max_pause_s=0.1)
    engine = engine_on(server, patience=patience)
    with pytest.raises(EngineUnavailableError, match=r"ReadTimeout after 0.2 s.*request_timeout_s"):
        engine.generate(PROMPTS, GREEDY, [0] * 4)


@pytest.mark.parametrize("absence_s", [1.5, pytest.param(30.0, marks=pytest.mark.slow)])
def test_a_server_that_is_gone_and_comes_back_is_waited_for(server: ServerProcess, absence_s: float) -> None:
    engine = engine_on(server, patience=Patience(first_pause_s=0.02, max_pause_s=0.5))  # the default budget
    assert_greedy(engine.generate(PROMPTS, GREEDY, [0] * 4))
    server.kill()
    comeback = threading.Timer(absence_s, lambda: server.start(wait=False))
    comeback.start()
    assert_greedy(engine.generate(PROMPTS, GREEDY, [0] * 4))
    comeback.join()
    assert server.seen()["completions"] == 4


def test_a_server_killed_in_the_middle_of_its_work_is_waited_for(server: ServerProcess) -> None:
    server.inject(delay_s=60)
    engine = engine_on(server)
    threading.Timer(0.5, server.kill).start()
    threading.Timer(1.5, lambda: server.start(wait=False)).start()
    assert_greedy(engine.generate(PROMPTS, GREEDY, [0] * 4))


def test_a_server_that_is_gone_for_good_stops_the_run(server: ServerProcess) -> None:
    patience = Patience(budget_s=1, first_pause_s=0.02, max_pause_s=0.1)
    engine = engine_on(server, patience=patience)
    server.kill()
    with pytest.raises(EngineUnavailableError) as stopped:
        engine.generate(PROMPTS * 10, GREEDY, [0] * 40)
    message = str(stopped.value)
    for part in (server.url, "within budget_s=1 s", "tries", "ConnectError", "src/serve.py", "resume="):
        assert part in message


def test_requests_in_a_queue_do_not_each_wait_for_a_server_that_is_gone(
    server: ServerProcess, caplog: pytest.LogCaptureFixture
) -> None:
    patience = Patience(budget_s=1, first_pause_s=0.3, max_pause_s=0.3)
    engine = engine_on(server, patience=patience, max_concurrent=16)
    server.kill()
    with pytest.raises(EngineUnavailableError):
        engine.generate(PROMPTS * 10, GREEDY, [0] * 40)
    assert caplog.text.count("next try in") <= 1 / 0.3 + 2  # one try per pause for all of them together


def test_another_replica_takes_over(servers: list[ServerProcess]) -> None:
    engine = engine_on(*servers)
    assert_greedy(engine.generate(PROMPTS, GREEDY, [0] * 4))
    assert [server.seen()["completions"] for server in servers] == [2, 2]
    servers[1].kill()
    assert_greedy(engine.generate(PROMPTS, GREEDY, [0] * 4))
    assert servers[0].seen()["completions"] == 2 + 4
    servers[1].start()
    time.sleep(QUICK.max_pause_s)
    assert_greedy(engine.generate(PROMPTS, GREEDY, [0] * 4))
    assert servers[1].seen()["completions"] == 2


NONSENSE = {
    "500": "HTTP 500: Internal Server Error",
    "502": "HTTP 502",
    "html": "JSONDecodeError",
    "half": "JSONDecodeError",
    "cut": "RemoteProtocolError",
    "empty": "expected a JSON object with 'choices', got None",
    "list": "expected a JSON object with 'choices', got []",
    "no choices": "expected one choice",
    "no logprobs": "expected a choice with logprobs.token_logprobs",
}


@pytest.mark.parametrize("malformed", NONSENSE)
def test_a_server_that_answers_nonsense_is_asked_again(
    server: ServerProcess, malformed: str, caplog: pytest.LogCaptureFixture
) -> None:
    engine = engine_on(server)
    server.inject(malformed=malformed)
    threading.Timer(0.2, lambda: server.inject(malformed="")).start()
    assert_greedy(engine.generate(PROMPTS, GREEDY, [0] * 4))
    assert NONSENSE[malformed] in caplog.text and "answers again" in caplog.text


@pytest.mark.parametrize("malformed", NONSENSE)
def test_a_server_that_answers_nothing_but_nonsense_stops_the_run(
    server: ServerProcess, malformed: str
) -> None:
    engine = engine_on(server, patience=Patience(budget_s=0.5, first_pause_s=0.02, max_pause_s=0.1))
    server.inject(malformed=malformed)
    with pytest.raises(EngineUnavailableError) as stopped:
        engine.generate(PROMPTS, GREEDY, [0] * 4)
    for part in (server.url, "within budget_s=0.5 s", NONSENSE[malformed], "resume="):
        assert part in str(stopped.value)


def test_scores_of_another_shape_stop_the_run(server: ServerProcess) -> None:
    engine = engine_on(server, patience=Patience(budget_s=0.5, first_pause_s=0.02, max_pause_s=0.1))
    server.inject(malformed="no logprobs")
    with pytest.raises(EngineUnavailableError, match="expected prompt_logprobs of 4 tokens"):
        engine.logprobs([PROMPTS[0]], [[9]])


def test_nonsense_of_one_replica_goes_to_the_other(servers: list[ServerProcess]) -> None:
    engine = engine_on(*servers, patience=Patience(budget_s=20, first_pause_s=5, max_pause_s=5))
    servers[0].inject(malformed="no choices")
    assert_greedy(engine.generate(PROMPTS, GREEDY, [0] * 4))
    assert servers[1].seen()["completions"] == 4


def test_a_hanging_replica_loses_its_requests_to_the_other(servers: list[ServerProcess]) -> None:
    engine = engine_on(*servers, patience=Patience(request_timeout_s=0.5, budget_s=20, first_pause_s=9))
    servers[0].inject(delay_s=60)
    assert_greedy(engine.generate(PROMPTS, GREEDY, [0] * 4))
    assert servers[1].seen()["completions"] == 4


def test_all_replicas_gone_stop_the_run(servers: list[ServerProcess]) -> None:
    engine = engine_on(*servers, patience=Patience(budget_s=1, first_pause_s=0.02, max_pause_s=0.1))
    servers[0].kill()
    assert_greedy(engine.generate(PROMPTS, GREEDY, [0] * 4))
    servers[1].kill()
    with pytest.raises(EngineUnavailableError) as stopped:
        engine.generate(PROMPTS, GREEDY, [0] * 4)
    assert all(server.url in str(stopped.value) for server in servers)
