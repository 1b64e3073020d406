"""Steps that hand weights over: to engines of all kinds, and to processes that share a model."""

from __future__ import annotations

import csv
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from engine_steps import engine_config, need_vllm
from findings import Findings, Skip
from learning_steps import need
from safetensors.torch import load_file
from setting import CONTEXT, ROOT, Setting
from torch import Tensor

from had.acting import ActingHalf
from had.callbacks.weight_sync import WeightSync, WeightSyncError, mean_difference, probe_logprobs
from had.engines.vllm_replica import Patience
from had.engines.vllm_servers import VLLMServers
from had.engines.vllm_transfer import FolderTransfer, IPCTransfer, NCCLTransfer
from had.models.student import package_weights
from had.runtime.instantiate import build

CHANGE = 0.3  # of every weight, relative to its standard deviation, between two syncs
# Play and updates of two runs that differ in the order of additions only.
SHARDED_LIMITS = {"cpu": (2e-5, 1e-3), "cuda": (1e-3, 0.05)}


def sync_local(setting: Setting, found: Findings) -> None:
    """Weights by reference to the engine inside the process, verified by the probe; broken ones caught."""
    need_vllm()
    need(setting.student)
    acting = ActingHalf(engine_config(setting, "student", "engine.student.enforce_eager=true", share=0.3))
    engine: Any = acting.student_engine
    syncs = Syncs(setting, found, acting, engine)
    syncs.whole()
    load = engine.load_weights

    def every_other_layer(version: int, weights: Mapping[str, Tensor]) -> None:
        stale = [f"layers.{index}." for index in range(1, 100, 2)]
        load(version, {k: v for k, v in weights.items() if not any(name in k for name in stale)})

    syncs.broken("without every other layer", every_other_layer)
    syncs.broken("of nothing", lambda version, weights: None)


class Syncs:
    """A trained model, an engine, and the callback between them.

    Args:
        setting: of the check.
        found: takes the numbers.
        acting: names the model and the probe.
        engine: takes the weights.
        device: of the trained model.
    """

    def __init__(
        self, setting: Setting, found: Findings, acting: ActingHalf, engine: Any, device: str | None = None
    ) -> None:
        self._found, self._acting, self._engine = found, acting, engine
        self._model = acting.student_files.model().to(device or setting.device)
        self._sync: WeightSync = build(acting.config.weight_sync, engine=engine, probe=acting.probe)
        data = SimpleNamespace(policy_version=0, finish_epoch=self._next_version)
        self._trainer: Any = SimpleNamespace(
            datamodule=data, strategy=SimpleNamespace(restore_checkpoint_after_setup=False)
        )
        self._version, self._seed = 0, 0

    def _next_version(self) -> int:
        self._version += 1
        return self._version

    def _train(self) -> None:
        """What an optimizer would do, and much more of it."""
        self._seed += 1
        torch.manual_seed(self._seed)
        with torch.no_grad():
            for parameter in self._model.parameters():
                scale = CHANGE * float(parameter.float().std().nan_to_num()) + 1e-3
                parameter.add_(scale * torch.randn_like(parameter))

    def _run(self) -> None:
        self._sync.on_train_epoch_end(self._trainer, SimpleNamespace(model=self._model))  # type: ignore[arg-type]

    def whole(self) -> None:
        """Two syncs of changed weights; the probe agrees."""
        probe = self._acting.probe
        for _ in range(2):
            self._train()
            old = self._engine.logprobs([probe.prompt_ids], [probe.response_ids])[0]
            seconds = self._sync.watch.seconds
            self._run()
            trained = probe_logprobs(self._model, probe)
            played = self._engine.logprobs([probe.prompt_ids], [probe.response_ids])[0]
            self._found.note(seconds_per_sync=self._sync.watch.seconds - seconds)
        limit = self._sync.tolerance
        self._found.at_most("probe, trainer and engine, in nats", mean_difference(trained, played), limit)
        moved = mean_difference(old, played)
        self._found.at_least("probe, before and after the sync, in nats", moved, 2 * limit)

    def broken(self, how: str, load: Callable[[int, Mapping[str, Tensor]], None]) -> None:
        """A sync that pretends to work is caught."""
        intact, self._engine.load_weights = self._engine.load_weights, load
        self._train()
        try:
            self._run()
            self._found.holds(f"a sync {how} is caught", False)
        except WeightSyncError as error:
            self._found.holds(f"a sync {how} is caught", "weight sync of version" in str(error))
        finally:
            self._engine.load_weights = intact


def sync_servers(setting: Setting, found: Findings) -> None:
    """The same with a vLLM server: GPU memory that both processes share; without a GPU, files."""
    transfer = IPCTransfer() if setting.is_gpu else FolderTransfer(setting.folder / "weights")
    _with_server(setting, found, transfer, "ipc" if setting.is_gpu else None, server_gpu="0")


def sync_nccl(setting: Setting, found: Findings) -> None:
    """The same with a server on another GPU, by NCCL."""
    if not setting.is_gpu or torch.cuda.device_count() < 2:
        raise Skip("needs two GPUs: NCCL connects no two processes on one")
    _with_server(setting, found, NCCLTransfer(first_port=_free_port()), "nccl", server_gpu="1")


def _with_server(
    setting: Setting, found: Findings, transfer: Any, backend: str | None, server_gpu: str
) -> None:
    need_vllm()
    need(setting.student)
    acting = ActingHalf(setting.config())
    files, renderer = acting.student_files, acting.student_renderer
    place = "gpu" if setting.is_gpu else "cpu"
    server = [f"server={place}", "role=student", f"server.first_port={_free_port()}"]
    server += [f"server.transfer_backend={backend or 'null'}", "server.startup_timeout_s=120"]
    if setting.is_gpu:
        server += [f"server.gpus=['{server_gpu}']", "server.gpu_memory_utilization=0.3"]
        server += ["server.extra_args=[--enforce-eager]"]
    config = setting.config(*server, primary="serve")
    fleet = build(config.server, model=files, max_context_tokens=CONTEXT)
    try:
        fleet.start()
        patience = Patience(budget_s=30, max_pause_s=2)
        engine = VLLMServers(fleet.urls, files, sorted(renderer.end_ids), CONTEXT, transfer, patience)
        syncs = Syncs(setting, found, acting, engine)
        syncs.whole()
        syncs.broken("of nothing", lambda version, weights: None)
    finally:
        fleet.stop()


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def fsdp(setting: Setting, found: Findings) -> None:
    """The whole program on one device, and sharded over all GPUs (two processes without one)."""
    ranks = torch.cuda.device_count() if setting.is_gpu else 2
    place = "gpu" if setting.is_gpu else "cpu"
    one = _program(setting, "one", f"trainer={place}", "trainer.devices=1")
    sharded = ["trainer=fsdp", f"trainer.accelerator={place}", f"trainer.devices={ranks}"]
    many = _program(setting, "sharded", *sharded, "placement.compute=float32")
    found.note(ranks=ranks, backend="nccl" if setting.is_gpu else "gloo")
    limit, update_limit = SHARDED_LIMITS[setting.device]
    rows = [_table(folder / "updates.csv") for folder in (one, many)]
    found.holds("as many updates", len(rows[0]) == len(rows[1]) > 0)
    for name in ("loss_response", "loss_preference", "grad_norm_response", "grad_norm_preference", "balance"):
        pairs = [(float(a[name]), float(b[name])) for a, b in zip(*rows, strict=True)]
        error = max(abs(a - b) / max(abs(a), 1e-12) for a, b in pairs)
        found.at_most(f"{name}, relative difference", error, limit)
    weights = [_weights(folder / "student" / "last") for folder in (one, many)]
    start = _weights(package_weights("student"))
    change = (weights[0] - start).norm()
    difference = float((weights[0] - weights[1]).norm() / change)
    found.at_most("change of the weights, relative L2 difference", difference, update_limit)


def _program(setting: Setting, name: str, *overrides: str) -> Path:
    """The folder of a run of two updates with the packaged pair."""
    folder = setting.folder / "runs" / f"{name}_{os.getpid()}"
    command = [
        sys.executable, str(ROOT / "src" / "train.py"), "experiment=had_household", *overrides,
        f"engine=hf_{'gpu' if setting.is_gpu else 'cpu'}",
        "engine.student.dtype=float32", "engine.teacher.dtype=float32", "trainer.precision=32-true",
        "optimizer.scheduler.num_warmup=0", "trainer.max_steps=2",
        "data.tasks_per_round=4", "data.batch_size=8",
        "env.max_turns=4", "env.tasks.num_train=100", f"env.tasks.cache_dir={setting.folder / 'games'}",
        "evaluation.num_tasks=1", "evaluation.num_validation_tasks=0", f"hydra.run.dir={folder}",
    ]  # fmt: skip
    finished = subprocess.run(command, capture_output=True, text=True, check=False)
    if finished.returncode != 0:
        raise RuntimeError(f"{' '.join(command)} ended with {finished.returncode}: {finished.stderr[-1500:]}")
    return folder


def _table(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _weights(folder: Path) -> Tensor:
    tensors = load_file(folder / "model.safetensors")
    return torch.cat([tensors[name].float().flatten() for name in sorted(tensors)])


STEPS = {"sync_local": sync_local, "sync_servers": sync_servers, "sync_nccl": sync_nccl, "fsdp": fsdp}
