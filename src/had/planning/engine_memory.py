"""Memory that an engine takes beside the trainer, from the limits in its configuration."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from had.models.architecture import ModelSize


@dataclass(frozen=True)
class EngineMemory:
    """Bytes of an engine in one process.

    Attributes:
        weights: of the model.
        cache: keys and values while it generates.
        kept: of these, what stays while the student trains.
        weights_kept: the same of the weights.
        replicas: of the model; 1 for an engine of each process, else the servers outside of the processes.
        is_outside: other machines or GPUs hold it.
        rows: sequences that it works on at once.
        kind: `hf` or `vllm`.
    """

    weights: int
    cache: int
    kept: int
    weights_kept: int
    replicas: int
    is_outside: bool
    rows: int
    kind: str


@dataclass(frozen=True)
class Use:
    """What an engine is used for.

    Attributes:
        row_tokens: cache slots that the longest usual request needs, its reply at the limit included.
        num_requests: that come at once.
        device_bytes: memory of the device.
    """

    row_tokens: int
    num_requests: int
    device_bytes: int


def engine_memory(
    target: Any, options: Mapping[str, Any], size: ModelSize, number_bytes: int, use: Use
) -> EngineMemory:
    """What an engine will take.

    An engine is known by the limits that its constructor takes: `urls` (servers elsewhere),
    `gpu_memory_utilization` (a share of the device), or `max_batch_tokens` with `prefix_cache_tokens`.

    Args:
        target: the class.
        options: its node in the configuration.
        size: of the model.
        number_bytes: of a weight or a cache entry.
        use: what it is used for.

    Raises:
        ValueError: the engine has none of these limits.
    """
    given = {name: p.default for name, p in inspect.signature(target).parameters.items()} | dict(options)
    weights = size.parameters * number_bytes
    if "urls" in given:
        rows = given["max_concurrent"]
        return EngineMemory(0, 0, 0, 0, len(given["urls"]), True, rows, "vllm")
    if "gpu_memory_utilization" in given:
        return _share_of_device(given, weights, use)
    if "max_batch_tokens" in given:
        return _slots(given, weights, size.kv_numbers * number_bytes, use)
    raise ValueError(
        f"plan: {target.__name__} has none of the limits urls, gpu_memory_utilization, max_batch_tokens, by "
        "which a plan knows what an engine takes; give its constructor one of them"
    )


def _share_of_device(given: Mapping[str, Any], weights: int, use: Use) -> EngineMemory:
    """A fixed share of the device (vLLM in the process), which is given back while it sleeps."""
    total = int(given["gpu_memory_utilization"] * use.device_bytes)
    if given["kv_cache_gib"] is not None:
        total = weights + int(given["kv_cache_gib"] * 2**30)
    cache = max(0, total - weights)
    kept, weights_kept = (0, 0) if given["sleeps"] else (cache, weights)
    return EngineMemory(weights, cache, kept, weights_kept, 1, False, given["max_num_seqs"], "vllm")


def _slots(given: Mapping[str, Any], weights: int, slot_bytes: int, use: Use) -> EngineMemory:
    """The engine on transformers: the cache of a batch, and that of earlier ones for prompts that go on."""
    rows = max(1, min(use.num_requests, given["max_batch_tokens"] // use.row_tokens))
    batch = rows * use.row_tokens * slot_bytes
    kept = min(given["prefix_cache_tokens"], use.num_requests * use.row_tokens) * slot_bytes
    return EngineMemory(weights, batch + kept, kept, weights, 1, False, rows, "hf")
