"""Time of a run from counts, sizes and the speed of a GPU: a rule of thumb, not a measurement."""

from __future__ import annotations

import math
from dataclasses import dataclass

from had.models.architecture import ModelSize
from had.planning.workload import Workload

NUM_PASSES_FORWARD, NUM_PASSES_BACKWARD = 2, 4  # floating-point operations per parameter and token
LONGEST_REPLY = 1.5  # of a batch, relative to the mean: all rows wait for it


@dataclass(frozen=True)
class Speed:
    """One GPU.

    Attributes:
        tflops: 10¹² operations per second, dense, in the type of the computation.
        tb_per_s: 10¹² bytes of memory per second.
        train_share, prefill_share, decode_share: of these that are reached.
    """

    tflops: float
    tb_per_s: float
    train_share: float
    prefill_share: float
    decode_share: float

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if value <= 0:
                raise ValueError(f"planning.speed.{name}: expected > 0, got {value}")


@dataclass(frozen=True)
class Server:
    """A model that generates.

    Attributes:
        size: of the model.
        number_bytes: of a weight or cache entry.
        layer_ms: least milliseconds of a layer in a decoding step.
        rows: sequences that it works on at once.
        replicas: that share the work.
    """

    size: ModelSize
    number_bytes: int
    layer_ms: float
    rows: int
    replicas: int

    def prefill_s(self, tokens: float, speed: Speed) -> float:
        """Seconds to read tokens."""
        return NUM_PASSES_FORWARD * self.size.active * tokens / (speed.tflops * 1e12 * speed.prefill_share)

    def step_s(self, rows: float, context: float, speed: Speed) -> float:
        """Seconds of one decoding step of so many rows: reading weights and cache, or starting kernels."""
        weights = min(self.size.parameters, self.size.active * max(1.0, rows)) * self.number_bytes
        cache = rows * context * self.size.kv_numbers * self.number_bytes
        reading = (weights + cache) / (speed.tb_per_s * 1e12 * speed.decode_share)
        return max(reading, self.size.layers * self.layer_ms / 1000)

    def generate_s(self, requests: float, new_prompt: float, prompt: float, reply: float, s: Speed) -> float:
        """Seconds to answer requests that are all there at once, spread over the replicas."""
        requests /= self.replicas
        batches = max(1, math.ceil(requests / self.rows)) if requests else 0
        if not batches:
            return 0.0
        rows = requests / batches
        steps = reply * LONGEST_REPLY
        return self.prefill_s(requests * new_prompt, s) + batches * steps * self.step_s(rows, prompt, s)


@dataclass(frozen=True)
class Training:
    """The learning half.

    Attributes:
        size: of the student.
        ranks: processes.
        groups: backward passes.
        is_checkpointed: every backward pass computes the forward again.
    """

    size: ModelSize
    ranks: int
    groups: int
    is_checkpointed: bool

    def update_s(self, work: Workload, speed: Speed) -> float:
        """Seconds of an update."""
        tokens = work.batch * (work.prompt + 2 * work.reply)
        again = NUM_PASSES_FORWARD if self.is_checkpointed else 0
        passes = NUM_PASSES_FORWARD + self.groups * (NUM_PASSES_BACKWARD + again)
        return passes * self.size.parameters * tokens / (self.ranks * speed.tflops * 1e12 * speed.train_share)


@dataclass(frozen=True)
class Times:
    """Seconds of a whole run by phase."""

    play: float
    label: float
    train: float
    evaluate: float

    @property
    def total(self) -> float:
        """Their sum."""
        return self.play + self.label + self.train + self.evaluate


def estimate(work: Workload, student: Server, teacher: Server, training: Training, speed: Speed) -> Times:
    """Seconds of a run.

    Episodes are played turn by turn, all tasks of a process side by side; states are labelled all at once.
    """
    per_turn = student.generate_s(work.tasks, work.new_prompt, work.prompt, work.reply, speed)
    label = work.asked.answers * teacher.generate_s(work.records, work.prompt, work.prompt, work.reply, speed)
    if work.asked.scored:
        label += teacher.prefill_s(work.records / teacher.replicas * (work.prompt + work.reply), speed)
    evaluated = student.generate_s(work.eval_episodes, work.new_prompt, work.prompt, work.reply, speed)
    return Times(
        play=work.rounds * work.turns * per_turn,
        label=work.rounds * label,
        train=work.updates * training.update_s(work, speed),
        evaluate=work.turns * evaluated,
    )
