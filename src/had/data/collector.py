"""One round: the student plays, the teacher labels; every rank a share of the tasks."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from had.records import Episode, Record, Task
from had.rollout.actor import Actor, RoundActor
from had.rollout.player import Player, derive_seed
from had.runtime.ranks import gather, merged, own_indices, sum_by_name
from had.teachers.labeler import Labeler

PhaseHook = Callable[[str, int, int], None]  # (phase, done, total)


@dataclass(frozen=True)
class Round:
    """What one round brought, on all ranks together.

    Attributes:
        number: from 0.
        policy_version: of the student that played.
        episodes: all of them, failed ones included.
        records: the labelled states.
        num_unlabelled: states without a record.
        seconds_collect, seconds_label: wall time of the slowest rank.
        work_collect, work_label: what the collector's counters counted in the meantime, on all ranks.
    """

    number: int
    policy_version: int
    episodes: tuple[Episode, ...]
    records: tuple[Record, ...]
    num_unlabelled: int
    seconds_collect: float
    seconds_label: float
    work_collect: Mapping[str, float] = field(default_factory=dict)
    work_label: Mapping[str, float] = field(default_factory=dict)


@dataclass
class Collector:
    """Plays and labels rounds. Round r is the same whatever was collected before, given the same weights.

    Each rank plays and labels some of the tasks with its own engines, then all get everything: the records
    do not depend on the number of ranks.

    Attributes:
        tasks: the training tasks.
        player: environment, harness and prompts.
        actor: who plays.
        labeler: who labels.
        condition: name of the harness condition under which the student plays.
        tasks_per_round: 16 in the paper.
        seed: of task order, play and labels.
        on_phase: progress hook.
        counters: numbers that only grow, read around the phases (what the engines did).
    """

    tasks: Sequence[Task]
    player: Player
    actor: Actor
    labeler: Labeler
    condition: str = "full"
    tasks_per_round: int = 16
    seed: int = 0
    on_phase: PhaseHook = field(default=lambda phase, done, total: None)
    counters: Callable[[], Mapping[str, float]] = dict

    def __post_init__(self) -> None:
        if not 1 <= self.tasks_per_round <= len(self.tasks):
            raise ValueError(
                f"tasks_per_round: expected 1 to {len(self.tasks)} (the training tasks), "
                f"got {self.tasks_per_round}"
            )

    def round_tasks(self, number: int) -> list[Task]:
        """The tasks of a round: a walk through seeded shuffles of the pool, each task once in a shuffle."""
        start, chosen = number * self.tasks_per_round, []
        for position in range(start, start + self.tasks_per_round):
            epoch, index = divmod(position, len(self.tasks))
            order = list(range(len(self.tasks)))
            random.Random(f"{self.seed}/tasks/{epoch}").shuffle(order)
            chosen.append(self.tasks[order[index]])
        return chosen

    def collect(self, number: int, policy_version: int, num_updates: int = 0) -> Round:
        """Play and label one round with the student that the actor's engine holds now.

        Args:
            number: of the round, from 0.
            policy_version: of the student.
            num_updates: optimizer updates done before, for actors that change with them.
        """
        if isinstance(self.actor, RoundActor):
            self.actor.begin_round(num_updates)
        tasks = self.round_tasks(number)
        # a task that comes twice is played by one rank: its second episode is told from its first there
        own = own_indices([task.id for task in tasks])
        usage_before = dict(vars(self.labeler.teacher.usage))
        started, counted = time.monotonic(), [self.counters()]
        self.on_phase("play", 0, len(own))
        episodes = self.player.play(
            [tasks[index] for index in own],
            self.actor,
            seed=derive_seed(self.seed, "play", number),
            prefix=f"r{number:04d}",
            condition=self.condition,
            policy_version=policy_version,
            progress=lambda done, total: self.on_phase("play", done, total),
        )
        played = time.monotonic()
        counted.append(self.counters())
        self.on_phase("label", 0, 1)
        seed = derive_seed(self.seed, "label", number)
        records, num_unlabelled = self.labeler.label(episodes, number, seed)
        self.on_phase("label", 1, 1)
        labelled = time.monotonic()
        counted.append(self.counters())
        self._share_usage(usage_before)
        seconds = gather((num_unlabelled, played - started, labelled - played))
        work_collect, work_label = (sum_by_name(gather(_growth(*pair))) for pair in pairwise(counted))
        return Round(
            number,
            policy_version,
            tuple(merged(own, episodes)),
            tuple(self._all_records(own, episodes, records)),
            sum(unlabelled for unlabelled, _, _ in seconds),
            max(collecting for _, collecting, _ in seconds),
            max(labelling for _, _, labelling in seconds),
            work_collect,
            work_label,
        )

    @staticmethod
    def _all_records(
        own: Sequence[int], episodes: Sequence[Episode], records: Sequence[Record]
    ) -> list[Record]:
        """The records of all ranks, in the order of the tasks and of the turns."""
        by_episode: dict[str, list[Record]] = {episode.id: [] for episode in episodes}
        for record in records:
            by_episode[record.episode_id].append(record)
        return [record for part in merged(own, list(by_episode.values())) for record in part]

    def _share_usage(self, before: dict[str, int]) -> None:
        """Add what the other ranks asked in this round, so that every rank holds the total."""
        usage = self.labeler.teacher.usage
        asked = {name: value - before[name] for name, value in vars(usage).items()}
        for name, value in sum_by_name(gather(asked)).items():
            setattr(usage, name, before[name] + int(value))


def _growth(before: Mapping[str, float], after: Mapping[str, float]) -> dict[str, float]:
    """By how much counters have grown."""
    return {name: value - before.get(name, 0) for name, value in after.items()}
