"""Commands that a player would not choose: what noise executes in their place."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Protocol

from had.records import EnvStep


class Strays(Protocol):
    """Draws stray commands."""

    def draw(self, step: EnvStep, listed: Sequence[str], refused_share: float, rng: random.Random) -> str:
        """A command for the present state.

        Args:
            step: the environment's last answer.
            listed: every command that was listed so far in the episode.
            refused_share: chance of a command that the environment will refuse.
            rng: draws.
        """


class ListedStrays:
    """The `Strays` of environments that list their commands."""

    def draw(self, step: EnvStep, listed: Sequence[str], refused_share: float, rng: random.Random) -> str:
        refused = [command for command in listed if command not in step.commands]
        if refused and rng.random() < refused_share:
            return rng.choice(refused)
        return rng.choice(list(step.commands))
