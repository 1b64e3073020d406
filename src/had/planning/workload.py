"""How much a run plays, asks and trains: counts from the configuration and typical lengths."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Typical:
    """Mean lengths of an environment, in tokens.

    Attributes:
        first_prompt: of the first turn, with what `tail` counts.
        per_turn: that a turn adds to the prompts of later turns, without the reply.
        tail: of a prompt that no later one keeps: harness text and list of commands.
        reply: of a reply.
        turns: share of the maximum that an episode lasts.
        eval_tasks: tasks of all evaluation splits.
    """

    first_prompt: float
    per_turn: float
    tail: float
    reply: float
    turns: float
    eval_tasks: int

    def prompt(self, turn: int, history_turns: int | None) -> float:
        """Length of the prompt of a turn, from 0."""
        kept = turn if history_turns is None else min(turn, history_turns)
        return self.first_prompt + kept * (self.per_turn + self.reply)

    def new_tokens(self, turn: int, history_turns: int | None) -> float:
        """What an engine has to read of it that it did not read at the turn before."""
        prompt = self.prompt(turn, history_turns)
        if turn == 0 or (history_turns is not None and turn > history_turns):
            return prompt  # the first one, or the window has moved: no common beginning but the instructions
        return min(prompt, self.per_turn + self.tail)


@dataclass(frozen=True)
class Asked:
    """What the teacher is asked at a visited state.

    Attributes:
        answers: sampled answers.
        scored: replies or actions whose probabilities it gives.
    """

    answers: int
    scored: int


@dataclass(frozen=True)
class Workload:
    """Counts of a run.

    Attributes:
        tasks: per round.
        turns: of an episode, on average.
        prompt, last_prompt: tokens of the mean prompt, and of the one of the last possible turn.
        new_prompt: tokens of the mean prompt that are read anew while playing.
        reply: tokens.
        records, updates_per_round: of a round.
        rounds, updates: of the run.
        batch: records of an update.
        asked: of the teacher.
        eval_episodes: before and after training, and of all validations between.
    """

    tasks: int
    turns: float
    prompt: float
    last_prompt: float
    new_prompt: float
    reply: float
    records: float
    updates_per_round: float
    rounds: int
    updates: int
    batch: int
    asked: Asked
    eval_episodes: int

    @property
    def teacher_answers(self) -> float:
        """Sampled answers of the whole run."""
        return self.rounds * self.records * self.asked.answers

    @property
    def tokens_played(self) -> float:
        """Sampled by the student in a round."""
        return self.records * self.reply


@dataclass(frozen=True)
class Limits:
    """What the configuration says of the size of a run.

    Attributes:
        max_turns: of an episode.
        history_turns: in the prompt, None for all.
        tasks: per round.
        batch: records of an update.
        updates_per_round: `drain`, or the most.
        updates: of the run.
        eval_runs: times that all evaluation tasks are played: conditions × before and after.
        eval_tasks: of all splits, None for the typical number.
        validation_episodes: of all validations.
    """

    max_turns: int
    history_turns: int | None
    tasks: int
    batch: int
    updates_per_round: int | str
    updates: int
    eval_runs: int
    eval_tasks: int | None
    validation_episodes: int


def workload(limits: Limits, typical: Typical, asked: Asked) -> Workload:
    """The counts of a run whose episodes are all typical.

    Every state gives a record; what remains of a round waits for the next one, so no record is lost.
    """
    turns = typical.turns * limits.max_turns
    played = range(max(1, round(turns)))
    prompts = [typical.prompt(turn, limits.history_turns) for turn in played]
    new = [typical.new_tokens(turn, limits.history_turns) for turn in played]
    records = limits.tasks * turns
    per_round = records / limits.batch
    if limits.updates_per_round != "drain":
        per_round = min(per_round, float(limits.updates_per_round))
    num_tasks = typical.eval_tasks if limits.eval_tasks is None else limits.eval_tasks
    return Workload(
        tasks=limits.tasks,
        turns=turns,
        prompt=sum(prompts) / len(prompts),
        last_prompt=typical.prompt(limits.max_turns - 1, limits.history_turns),
        new_prompt=sum(new) / len(new),
        reply=typical.reply,
        records=records,
        updates_per_round=per_round,
        rounds=math.ceil(limits.updates / per_round),
        updates=limits.updates,
        batch=limits.batch,
        asked=asked,
        eval_episodes=limits.eval_runs * num_tasks + limits.validation_episodes,
    )
