"""How the student's weights get to vLLM servers, by vLLM's own interfaces.

`FolderTransfer` needs a file system that trainer and servers share and works everywhere; `NCCLTransfer` and
`IPCTransfer` go from GPU to GPU. The servers need `VLLM_SERVER_DEV_MODE=1`, which `src/serve.py` sets.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from safetensors.torch import save_file
from torch import Tensor, nn

from had.engines.base import EngineUnavailableError
from had.engines.vllm_replica import Replica, ReplicaSet, UnreachableError

Weights = Mapping[str, Tensor]
WEIGHTS_FILE = "model.safetensors"


class Transfer(Protocol):
    """Brings weights to servers."""

    def send(self, servers: ReplicaSet, version: int, weights: Weights, timeout_s: float) -> None:
        """Bring the weights of a policy version to every server."""

    def send_again(self, replica: Replica, version: int, timeout_s: float) -> None:
        """Bring the weights that were sent last to a server that was started anew.

        Raises:
            EngineUnavailableError: they cannot be had again.
        """


class FolderTransfer:
    """Writes a safetensors file that the servers read.

    Args:
        folder: where, on a file system that trainer and servers share under the same path.
    """

    def __init__(self, folder: str | Path) -> None:
        self._folder = Path(folder).absolute()

    def send(self, servers: ReplicaSet, version: int, weights: Weights, timeout_s: float) -> None:
        target = self._target(version)
        temporary = target.with_name(f".{target.name}.partial")
        shutil.rmtree(temporary, ignore_errors=True)
        shutil.rmtree(target, ignore_errors=True)
        temporary.mkdir(parents=True)
        save_file(_own_tensors(weights), temporary / WEIGHTS_FILE)
        temporary.rename(target)
        servers.call_each(lambda replica: self.send_again(replica, version, timeout_s))
        for old in self._folder.glob("version_*"):
            if old != target:
                shutil.rmtree(old)

    def send_again(self, replica: Replica, version: int, timeout_s: float) -> None:
        call = {"method": "receive_folder", "args": [str(self._target(version))], "timeout": timeout_s}
        replica.request("POST", "/collective_rpc", timeout_s=timeout_s, json=call)

    def _target(self, version: int) -> Path:
        return self._folder / f"version_{version:05d}"


def _own_tensors(weights: Weights) -> dict[str, Tensor]:
    """The weights on the CPU, of tied ones the first name only."""
    kept: dict[int, str] = {}
    for name, value in weights.items():
        kept.setdefault(value.data_ptr(), name)
    return {name: weights[name].detach().cpu().contiguous() for name in kept.values()}


class _Weights(nn.Module):
    """A module whose parameters are any named tensors: what vLLM's trainer side sends."""

    def __init__(self) -> None:
        super().__init__()
        self.tensors: Weights = {}

    def named_parameters(self, *_: Any, **__: Any) -> Any:
        return iter([(name, value.detach()) for name, value in self.tensors.items()])


class _VLLMTransfer:
    """vLLM's trainer side: a connection to each server, opened when weights are sent for the first time."""

    def __init__(self) -> None:
        self._weights = _Weights()
        self._senders: dict[str, Any] = {}

    def send(self, servers: ReplicaSet, version: int, weights: Weights, timeout_s: float) -> None:
        self._weights.tensors = weights
        for index, replica in enumerate(servers.replicas):
            if replica.url not in self._senders:
                self._senders[replica.url] = self._open(index, replica, timeout_s)
            self._senders[replica.url].send_weights()
        self._weights.tensors = {}

    def send_again(self, replica: Replica, version: int, timeout_s: float) -> None:
        raise EngineUnavailableError(
            f"server {replica.url} was started anew and has lost the weights of policy version {version}, "
            f"which {type(self).__name__} cannot send in the middle of a round. Go on from the last round "
            "with resume=CHECKPOINT, or take a FolderTransfer, which survives this"
        )

    def _open(self, index: int, replica: Replica, timeout_s: float) -> Any:
        from vllm.distributed.weight_transfer.base import ModuleSource
        from vllm.distributed.weight_transfer.clients import HTTPVLLMWeightSyncClient
        from vllm.distributed.weight_transfer.factory import WeightTransferTrainerFactory

        client = HTTPVLLMWeightSyncClient(replica.url, timeout=timeout_s)
        init = self._init_info(index, replica)
        return WeightTransferTrainerFactory.trainer_init(
            init, client=client, source=ModuleSource(self._weights)
        )

    def _init_info(self, index: int, replica: Replica) -> Any:
        raise NotImplementedError


class NCCLTransfer(_VLLMTransfer):
    """Broadcasts from the trainer's GPU to those of the servers (vLLM's `nccl` weight transfer).

    The servers must be started with `transfer_backend=nccl`.

    Args:
        host: address of the trainer's machine, as the servers reach it.
        first_port: of the first server's group; the next server takes the next port.
    """

    def __init__(self, host: str = "127.0.0.1", first_port: int = 29600) -> None:
        super().__init__()
        self._host, self._first_port = host, first_port

    def _init_info(self, index: int, replica: Replica) -> Any:
        from vllm.distributed.weight_transfer.nccl_engine import NCCLTrainerInitInfo

        size = replica.request("GET", "/get_world_size")["world_size"]
        return NCCLTrainerInitInfo(
            master_address=self._host, master_port=self._first_port + index, world_size=1 + size, rank=0
        )


class IPCTransfer(_VLLMTransfer):
    """Shares the trainer's GPU memory with servers on the same GPU (vLLM's `ipc` weight transfer).

    The servers must be started with `transfer_backend=ipc`. vLLM sends the handles pickled and reads them
    only with `VLLM_ALLOW_INSECURE_SERIALIZATION=1`: keep such a server on the loopback address.
    """

    def _init_info(self, index: int, replica: Replica) -> Any:
        from vllm.distributed.weight_transfer.ipc_engine import IPCTrainerInitInfo

        return IPCTrainerInitInfo(rank=0)


def reset_prefix_cache(replica: Replica, timeout_s: float) -> None:
    """Make a server forget the prefixes that older weights computed.

    Raises:
        UnreachableError: it still works on requests and keeps theirs.
    """
    answer = replica.request("POST", "/reset_prefix_cache", timeout_s=timeout_s)
    if not answer or not answer.get("success", False):
        raise UnreachableError(
            f"/reset_prefix_cache: expected success, got {answer}: it still works on requests, whose "
            "prefixes belong to the old weights; nobody else may use the student's servers during a run"
        )
