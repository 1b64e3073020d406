"""Mixed acting: at some turns the teacher acts in the student's place (Guided-OPD)."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from had.engines.base import EngineFailure
from had.rollout.actor import Actor, Answer, Request


@dataclass(frozen=True)
class CosineDecay:
    """p(k) = ½ (1 + cos(π · min(k / ⌊share · K⌋, 1))): from 1 at the first update down to 0.

    Attributes:
        num_updates: K, optimizer updates of the whole run.
        share: of the updates after which p is 0; 0.8 in the paper.
    """

    num_updates: int
    share: float = 0.8

    def __post_init__(self) -> None:
        if self.num_updates < 1 or not 0 <= self.share <= 1:
            raise ValueError(
                f"expected num_updates >= 1 and share from 0 to 1, got {self.num_updates} and {self.share}; "
                "set trainer.max_steps to the number of updates"
            )

    def __call__(self, num_done: int) -> float:
        """The probability after `num_done` updates."""
        horizon = math.floor(self.share * self.num_updates)
        progress = min(num_done / horizon, 1.0) if horizon else 1.0
        return 0.5 * (1 + math.cos(math.pi * progress))


@dataclass
class MixtureActor:
    """The teacher acts on a turn with a probability that is fixed within a round; else the student does.

    The choice is made by the seed of the turn, so it does not depend on what is played beside it.

    Attributes:
        student, teacher: who act; their answers carry their names.
        schedule: optimizer updates done -> probability that the teacher acts.
        probability: the one in force.
        needs_shared_tokenizer: the teacher reads the student's prompt ids, and its reply ids are kept.
    """

    needs_shared_tokenizer: ClassVar[bool] = True

    student: Actor
    teacher: Actor
    schedule: Callable[[int], float]
    probability: float = field(init=False)

    def __post_init__(self) -> None:
        self.begin_round(0)

    def begin_round(self, num_updates: int) -> None:
        self.probability = self.schedule(num_updates)

    def act(self, requests: Sequence[Request]) -> list[Answer | EngineFailure]:
        draws = [random.Random(f"{request.seed}/who").random() for request in requests]
        answers: dict[int, Answer | EngineFailure] = {}
        for actor, is_teacher in ((self.teacher, True), (self.student, False)):
            indices = [i for i, draw in enumerate(draws) if (draw < self.probability) is is_teacher]
            if indices:
                answers |= zip(indices, actor.act([requests[index] for index in indices]), strict=True)
        return [answers[index] for index in range(len(requests))]
