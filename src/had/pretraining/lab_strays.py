"""Stray commands for ScienceWorld, which lists none: what a weak player tries there."""

from __future__ import annotations

import random
from collections.abc import Sequence

from had.pretraining.lab_plans import ANIMALS, LOOK
from had.pretraining.notebook import ROOMS
from had.records import EnvStep

HARMLESS = (LOOK, "inventory", "wait1")
THINGS = ("thermometer", "unknown substance B", "metal fork", "chair", "flower pot 10", "red box")


class LabStrays:
    """The `Strays` of the laboratory: wrong rooms, idle commands, and things that are not there.

    Names in the last observation and in the inventory are left alone, since a wrong focus ends the episode.
    """

    def draw(self, step: EnvStep, listed: Sequence[str], refused_share: float, rng: random.Random) -> str:
        if rng.random() >= refused_share:
            return f"teleport {rng.choice(ROOMS)}" if rng.random() < 0.6 else rng.choice(HARMLESS)
        near = " ".join([step.observation, *step.state.held])
        verb = rng.choice(("focus on", "pick up", "go to"))
        names = ROOMS if verb == "go to" else (*ANIMALS, *THINGS)
        return f"{verb} {rng.choice([name for name in names if name not in near])}"
