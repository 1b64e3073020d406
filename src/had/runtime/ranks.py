"""The processes that train together: who this one is, what it works on, and values of all of them.

With one process every function returns what it was given.
"""

from __future__ import annotations

import os
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, TypeVar

import torch
import torch.distributed as dist

Value = TypeVar("Value")

# Set by Lightning's launcher, torchrun and SLURM, in this order of trust.
_RANK_VARIABLES = ("RANK", "SLURM_PROCID", "LOCAL_RANK")
_LOCAL_RANK_VARIABLES = ("LOCAL_RANK", "SLURM_LOCALID")
# A shell inside an allocation has SLURM's variables too but is one process; Lightning tells it in this way.
_SHELL_JOBS = ("bash", "interactive")


def _is_connected() -> bool:
    return dist.is_available() and dist.is_initialized()


def num_ranks() -> int:
    """Processes that train together."""
    return dist.get_world_size() if _is_connected() else 1


def rank() -> int:
    """Number of this process, from 0; before the processes are connected, what the launcher says."""
    return dist.get_rank() if _is_connected() else _from_environment(_RANK_VARIABLES)


def is_first() -> bool:
    """True on the one process that writes files and prints."""
    return rank() == 0


def local_rank() -> int:
    """Number of this process on its machine, from 0."""
    return _from_environment(_LOCAL_RANK_VARIABLES)


def _from_environment(names: Sequence[str]) -> int:
    is_shell = os.environ.get("SLURM_JOB_NAME") in _SHELL_JOBS
    for name in names:
        if name in os.environ and not (is_shell and name.startswith("SLURM_")):
            return int(os.environ[name])
    return 0


def launch_name() -> str | None:
    """A name that all processes of one launch share, None when nothing but Lightning launches them.

    Processes that torchrun or SLURM starts each read their own clock: a run folder with the time in its name
    would be another one on every rank.
    """
    if "TORCHELASTIC_RUN_ID" in os.environ:
        return f"torchrun_{os.environ['TORCHELASTIC_RUN_ID']}"
    if "SLURM_JOB_ID" in os.environ and os.environ.get("SLURM_JOB_NAME") not in _SHELL_JOBS:
        return f"slurm_{os.environ['SLURM_JOB_ID']}.{os.environ.get('SLURM_STEP_ID', '0')}"
    return None


def take_own_gpu() -> None:
    """Make `cuda` mean this process's GPU, also for what is built before Lightning starts."""
    if torch.cuda.is_available():
        torch.cuda.set_device(local_rank() % torch.cuda.device_count())


def gather(value: Any) -> list[Any]:
    """The value of every rank, in the order of ranks; must be called on every rank."""
    if num_ranks() == 1:
        return [value]
    values: list[Any] = [None] * num_ranks()
    dist.all_gather_object(values, value)
    return values


def of_first(value: Value) -> Value:
    """The value that the first rank has, for decisions that all must take alike."""
    return gather(value)[0]


def sum_by_name(parts: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Sums by name over all parts; a name that a part lacks counts as 0."""
    names = dict.fromkeys(name for part in parts for name in part)
    return {name: sum(part.get(name, 0.0) for part in parts) for name in names}


def own_indices(keys: Sequence[Hashable]) -> list[int]:
    """The positions that this rank works on: distinct keys are dealt out in turn, equal ones go together."""
    dealt: dict[Hashable, int] = {}
    me = rank() if num_ranks() > 1 else 0  # a launcher may have numbered processes that do not work together
    for key in keys:
        dealt.setdefault(key, len(dealt) % num_ranks())
    return [index for index, key in enumerate(keys) if dealt[key] == me]


def merged(indices: Sequence[int], values: Sequence[Value]) -> list[Value]:
    """The values of all ranks in the order of their positions; must be called on every rank.

    Args:
        indices: positions that this rank worked on.
        values: what it made of them.
    """
    found: dict[int, Value] = {}
    for part in gather(dict(zip(indices, values, strict=True))):
        found |= part
    return [found[index] for index in sorted(found)]
