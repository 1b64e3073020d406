"""Plays one task in two environments at once and demands the same answers."""

from __future__ import annotations

import random
from collections.abc import Sequence

from had.envs.base import TextEnv
from had.records import EnvStep, Task

_REFUSED = ("go to fridge 99", "take mug 1 from shelf 77", "LOOK", "sing", "", "move apple 1 to the moon")
_SHARE_REFUSED = 0.1
_SHARE_TRAVEL = 0.3  # three in four possible commands are "go to"; the others are what can go wrong


class SideBySide:
    """Two environments of which the first is the reference."""

    def __init__(self, reference: TextEnv, candidate: TextEnv) -> None:
        self._reference = reference
        self._candidate = candidate
        self._commands: list[str] = []

    def reset(self, task: Task) -> EnvStep:
        self._task = task
        self._commands = []
        return self._compare(self._reference.reset(task), self._candidate.reset(task))

    def step(self, command: str) -> EnvStep:
        self._commands.append(command)
        return self._compare(self._reference.step(command), self._candidate.step(command))

    def play(self, task: Task, walkthrough: Sequence[str], num_random: int, seed: int) -> tuple[int, bool]:
        """Play at random, then the walkthrough from a new start; return the number of steps and if it won."""
        rng = random.Random(seed)
        answer = self.reset(task)
        for _ in range(num_random):
            answer = self.step(_choose(answer.commands, rng))
        answer = self.reset(task)
        for command in walkthrough:
            answer = self.step(command)
        is_won = answer.is_won
        for _ in range(num_random // 4):  # after the end, too
            answer = self.step(_choose(answer.commands, rng))
        return num_random + len(walkthrough) + num_random // 4, is_won

    def _compare(self, expected: EnvStep, got: EnvStep) -> EnvStep:
        assert got == expected, f"{self._task.source} after {self._commands}"
        return got


def _choose(commands: Sequence[str], rng: random.Random) -> str:
    share = rng.random()
    if share < _SHARE_REFUSED:
        return rng.choice(_REFUSED)
    if share < _SHARE_REFUSED + _SHARE_TRAVEL:
        return rng.choice(commands)
    return rng.choice([command for command in commands if not command.startswith("go to")])
