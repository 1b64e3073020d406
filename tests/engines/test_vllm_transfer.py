"""What the GPU transfers hand to vLLM's trainer side; the sending itself needs GPUs."""

from __future__ import annotations

import importlib.util
from typing import Any

import pytest
import torch

from had.engines.vllm_transfer import IPCTransfer, NCCLTransfer

pytestmark = [
    pytest.mark.vllm,
    pytest.mark.skipif(importlib.util.find_spec("vllm") is None, reason="needs vLLM (README)"),
]


class Card:
    """A server that is split over two GPUs."""

    url = "http://127.0.0.1:1"

    def request(self, method: str, path: str) -> Any:
        assert (method, path) == ("GET", "/get_world_size")
        return {"world_size": 2}


def test_each_server_has_a_group_of_its_own() -> None:
    transfer = NCCLTransfer(host="10.0.0.1", first_port=29600)
    info = transfer._init_info(1, Card())  # type: ignore[arg-type]
    assert (info.master_address, info.master_port, info.world_size, info.rank) == ("10.0.0.1", 29601, 3, 0)
    assert IPCTransfer()._init_info(0, Card()).backend == "ipc"  # type: ignore[arg-type]


def test_vllm_reads_the_weights_that_are_sent_now() -> None:
    from vllm.distributed.weight_transfer.base import ModuleSource

    transfer = NCCLTransfer()
    source = ModuleSource(transfer._weights)
    for value in (1.0, 2.0):  # one source, new tensors every round
        transfer._weights.tensors = {"a": torch.full((2, 3), value), "b": torch.full((4,), value)}
        metadata = source.metadata() if callable(source.metadata) else source.metadata
        assert [(meta.name, meta.shape) for meta in metadata] == [("a", (2, 3)), ("b", (4,))]
        pairs = source.iter_full() if hasattr(source, "iter_full") else iter(source)
        assert {name: float(tensor.mean()) for name, tensor in pairs} == {"a": value, "b": value}
