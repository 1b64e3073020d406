"""The sharding strategy with the sizes that this project uses."""

from __future__ import annotations

from datetime import timedelta

from lightning.pytorch.strategies import ModelParallelStrategy


class FullySharded(ModelParallelStrategy):
    """FSDP2 over all processes of all machines, no tensor parallelism.

    Lightning's own default is one shard group per machine with tensor parallelism inside it.

    Args:
        process_group_backend: `nccl` or `gloo`; None takes the usual one of the accelerator.
        timeout_minutes: after which a rank that waits for the others gives up. It has to be longer than the
            slowest rank plays and labels its share of a round.
        save_distributed_checkpoint: a folder with a file per rank, in place of one file that rank 0 collects.
    """

    def __init__(
        self,
        process_group_backend: str | None = None,
        timeout_minutes: float = 60.0,
        save_distributed_checkpoint: bool = False,
    ) -> None:
        if timeout_minutes <= 0:
            raise ValueError(f"timeout_minutes: expected > 0, got {timeout_minutes}")
        super().__init__(
            tensor_parallel_size=1,
            save_distributed_checkpoint=save_distributed_checkpoint,
            process_group_backend=process_group_backend,
            timeout=timedelta(minutes=timeout_minutes),
        )

    def setup_environment(self) -> None:
        self._data_parallel_size = self.num_nodes * self.num_processes
        super().setup_environment()
