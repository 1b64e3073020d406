"""Starting, watching and stopping servers, with real processes in place of vLLM."""

from __future__ import annotations

import sys
from pathlib import Path

import httpx
import pytest
from server_process import PROGRAM, free_port

from had.engines.base import EngineUnavailableError
from had.engines.vllm_launch import ServerFleet
from had.models.model_files import ModelFiles

MODEL = ModelFiles("packaged:student")


class TableFleet(ServerFleet):
    """Serves the test's table model."""

    def command(self, index: int) -> list[str]:
        return [sys.executable, str(PROGRAM), self.urls[index].rpartition(":")[2], "table-model"]


class DyingFleet(ServerFleet):
    def command(self, index: int) -> list[str]:
        return [sys.executable, "-c", "import sys; sys.exit('no memory left on the GPU')"]


def answers(url: str) -> bool:
    try:
        return httpx.get(f"{url}/health").is_success
    except httpx.TransportError:
        return False


def test_replicas_start_are_watched_and_stop(tmp_path: Path) -> None:
    port = free_port()
    fleet = TableFleet(MODEL, 64, tmp_path, num_replicas=2, first_port=port)
    fleet.start()
    assert fleet.urls == [f"http://127.0.0.1:{port}", f"http://127.0.0.1:{port + 1}"]
    assert all(map(answers, fleet.urls))
    fleet._processes[1].kill()
    ended = rf"{fleet.urls[1]} ended with code -9.*server_{port + 1}"
    with pytest.raises(EngineUnavailableError, match=ended):
        fleet.watch()
    fleet.stop()
    assert not any(map(answers, fleet.urls))


def test_a_server_that_ends_while_it_starts_is_told_with_its_last_words(tmp_path: Path) -> None:
    with pytest.raises(EngineUnavailableError) as stopped:
        DyingFleet(MODEL, 64, tmp_path, first_port=free_port()).start()
    assert "its process has ended" in str(stopped.value) and "no memory left on the GPU" in str(stopped.value)


def test_the_command_states_what_the_client_relies_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("had.engines.vllm_local.VLLMEngine.check_installed", lambda: None)
    fleet = ServerFleet(
        MODEL, 64, tmp_path, first_port=9000, transfer_backend="nccl", sleeps=True, extra_args=["--seed", "3"]
    )
    command = " ".join(fleet.command(0))
    for part in (
        f"--model {MODEL.locate()}", "--port 9000", "--max-model-len 65", "--max-logprobs 64", "--seed 3",
        "--generation-config vllm", "--logprobs-mode raw_logprobs", "--enable-prefix-caching",
        '--weight-transfer-config {"backend": "nccl"}', "--enable-sleep-mode", "--host 127.0.0.1",
    ):  # fmt: skip
        assert part in command


def test_bad_arguments_are_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"gpus: .* got \['0'\]"):
        ServerFleet(MODEL, 64, tmp_path, num_replicas=2, gpus=["0"])
    with pytest.raises(ValueError, match=r"transfer_backend: .* got 'carrier pigeon'"):
        ServerFleet(MODEL, 64, tmp_path, transfer_backend="carrier pigeon")
