"""The plan of a run: sizes, memory of one process, counts and time, from its configuration alone."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from omegaconf import DictConfig, OmegaConf
from torch import Tensor

from had.acting import ActingHalf
from had.batch import TokenBatch
from had.models.architecture import ModelSize, model_size, read_config
from had.models.memory import (
    StepShape,
    TrainingMemory,
    activation_bytes,
    gathered_bytes,
    training_memory,
)
from had.models.sharding import Placement
from had.models.student import torch_dtype
from had.planning.engine_memory import EngineMemory, Use, engine_memory
from had.planning.timing import Server, Speed, Times, Training, estimate
from had.planning.workload import Asked, Limits, Typical, Workload, workload
from had.runtime.instantiate import as_plain, build, target_of
from had.runtime.strategies import FullySharded
from had.teachers.questions import TEACHER

GIB = 2**30
_DEFAULT_GPU_GIB = 80
LONG_REPLY = 2  # length of the replies in the largest micro-batch, relative to the mean


def step_mask(nodes_BT: Tensor, parents_BM: Tensor) -> Tensor:
    """The mask of a micro-batch, made as in training."""
    return TokenBatch(nodes_BT, nodes_BT, nodes_BT, parents_BM, {}, {}).attention_mask()


@dataclass
class Plan:
    """Everything is computed on first use; no weight, no tokenizer and no task is loaded.

    Attributes:
        config: the whole configuration of a run.
    """

    config: DictConfig

    @cached_property
    def assumptions(self) -> dict[str, Any]:
        """The group `planning`."""
        return as_plain(self.config.planning)

    # processes

    @cached_property
    def is_gpu(self) -> bool:
        """The run wants GPUs."""
        return self.config.trainer.accelerator in ("gpu", "cuda")

    @cached_property
    def ranks(self) -> int:
        """Processes that train."""
        devices, nodes = self.config.trainer.devices, self.config.trainer.get("num_nodes", 1)
        if self.assumptions["gpus"]:
            return int(self.assumptions["gpus"])
        here = torch.cuda.device_count() or 1
        return nodes * (here if devices in ("auto", -1) else int(devices))

    @cached_property
    def strategy(self) -> str:
        """How the processes share the student."""
        node = self.config.trainer.get("strategy")
        if node is None:
            return "one process"
        return "fully sharded" if self.is_sharded else "data parallel"

    @property
    def is_sharded(self) -> bool:
        """Weights, gradients and optimizer state are split."""
        node = self.config.trainer.get("strategy")
        return OmegaConf.is_dict(node) and issubclass(target_of(node), FullySharded)

    @cached_property
    def device_bytes(self) -> int:
        """Memory of one process's device."""
        if self.assumptions["gpu_memory_gib"]:
            return int(self.assumptions["gpu_memory_gib"] * GIB)
        if not self.is_gpu:
            return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // self.ranks
        if torch.cuda.is_available():
            totals = [
                torch.cuda.get_device_properties(i).total_memory for i in range(torch.cuda.device_count())
            ]
            return min(totals)
        return _DEFAULT_GPU_GIB * GIB

    @property
    def usable_bytes(self) -> int:
        """Of these, what tensors may take."""
        return int(self.device_bytes * (1 - self.assumptions["reserve"]))

    # models

    @cached_property
    def acting(self) -> ActingHalf:
        """Names the models; nothing else of it is used."""
        return ActingHalf(self.config)

    @cached_property
    def student_config(self) -> Any:
        """The student's architecture."""
        return read_config(self.acting.student_files, self.assumptions["architectures"])

    @cached_property
    def student(self) -> ModelSize:
        """The student's size."""
        return model_size(self.student_config)

    @cached_property
    def teacher(self) -> ModelSize:
        """The teacher's size."""
        return model_size(read_config(self.acting.teacher_files, self.assumptions["architectures"]))

    # work

    @cached_property
    def typical(self) -> Typical:
        """Lengths: the environment's own numbers, else the assumed ones."""
        own = self.config.env.get("typical")
        return Typical(**(self.assumptions["typical"] if own is None else as_plain(own)))

    @cached_property
    def asked(self) -> Asked:
        """What the teacher is asked per state; a question that does not say gives one answer."""
        asked = [build(node) for node in self.config.method.questions]
        asked = [question for question in asked if question.asks == TEACHER]
        return Asked(
            sum(getattr(question, "num_answers", 1) for question in asked),
            sum(getattr(question, "num_scored", 0) for question in asked),
        )

    @cached_property
    def work(self) -> Workload:
        """Counts."""
        data, evaluation, env = self.config.data, self.config.evaluation, self.config.env
        splits = len(evaluation.splits or env.eval_splits)
        validations = 0
        if evaluation.num_validation_tasks and env.validation_split:
            times = self.config.trainer.max_steps // evaluation.every_num_updates
            validations = times * evaluation.num_validation_tasks
        limits = Limits(
            env.max_turns,
            self.config.prompt.history_turns,
            data.tasks_per_round,
            data.batch_size,
            data.updates_per_round,
            self.config.trainer.max_steps,
            2 * len(evaluation.conditions),
            evaluation.num_tasks and evaluation.num_tasks * splits,
            validations,
        )
        return workload(limits, self.typical, self.asked)

    # memory

    @cached_property
    def placement(self) -> Placement:
        """Types and checkpointing."""
        return build(self.config.placement)

    @cached_property
    def compute(self) -> str:
        """Type in which the student is computed with while it trains."""
        if self.is_sharded:
            return self.placement.compute
        precision = str(self.config.trainer.precision)
        return "bfloat16" if precision.startswith("bf16") else "float32"

    @cached_property
    def groups(self) -> int:
        """Gradients that are kept apart."""
        terms = [build(node).name for node in self.config.method.losses]
        return len(build(self.config.method.balance).groups(terms))

    def shape(self, tokens: int) -> StepShape:
        """The largest micro-batch of records of so many tokens."""
        rows = max(1, self.config.data.max_tokens // tokens)
        rows = min(rows, -(-self.config.data.batch_size // self.ranks))
        scored = rows * len(self.config.method.layouts) * LONG_REPLY * self.typical.reply
        return StepShape(rows, tokens, int(scored), self.groups)

    @cached_property
    def usual_shape(self) -> StepShape:
        """With the prompts of the last turn."""
        longest = self.work.last_prompt + 3 * LONG_REPLY * self.typical.reply
        return self.shape(min(int(longest), self.config.env.max_context_tokens))

    @cached_property
    def longest_shape(self) -> StepShape:
        """With prompts at the limit of the context."""
        return self.shape(self.config.env.max_context_tokens)

    def training(self, shape: StepShape) -> TrainingMemory:
        """The trainer's memory with such micro-batches."""
        is_checkpointed = self.placement.activation_checkpointing
        activations = activation_bytes(self.student_config, self.compute, is_checkpointed, shape, step_mask)
        shards = self.ranks if self.is_sharded else 1
        return training_memory(self.student, self.placement, activations, self.groups, shards, self._copies())

    def _copies(self) -> int:
        """Gathered weights; or autocast's, and the buckets that DistributedDataParallel makes."""
        if self.is_sharded:
            return gathered_bytes(self.student, self.placement)
        number, compute = (torch_dtype(name).itemsize for name in (self.placement.weights, self.compute))
        copies = self.student.parameters * compute if compute != number else 0
        return copies + (self.student.parameters * number if self.strategy == "data parallel" else 0)

    def engine(self, role: str) -> EngineMemory:
        """Memory of the engine of a role."""
        size = self.student if role == "student" else self.teacher
        node = self.config.engine[role]
        row = int(self.work.last_prompt) + self.config.env.max_reply_tokens
        at_once = self.work.records / self.ranks
        if role == "student":
            at_once = max(self.work.tasks / self.ranks, self.config.evaluation.num_slots)
        use = Use(row, max(1, math.ceil(at_once)), self.device_bytes)
        return engine_memory(target_of(node), as_plain(node), size, self._number_bytes(node), use)

    @staticmethod
    def _number_bytes(node: Mapping[str, Any]) -> int:
        return torch_dtype(str(node.get("dtype", "bfloat16"))).itemsize

    # time

    @cached_property
    def times(self) -> Times:
        """Seconds; meaningful on GPUs only."""
        speeds = dict(self.assumptions["speed"])
        layer_ms = speeds.pop("layer_ms")
        servers = {}
        for role, size in (("student", self.student), ("teacher", self.teacher)):
            engine = self.engine(role)
            replicas = engine.replicas if engine.is_outside else self.ranks
            number = self._number_bytes(self.config.engine[role])
            servers[role] = Server(size, number, layer_ms[engine.kind], engine.rows, replicas)
        is_checkpointed = self.placement.activation_checkpointing
        learner = Training(self.student, self.ranks, self.groups, is_checkpointed)
        return estimate(self.work, servers["student"], servers["teacher"], learner, Speed(**speeds))
