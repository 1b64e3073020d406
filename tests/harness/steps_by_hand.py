"""Answers of an environment and facts of a tracker, written tersely."""

from __future__ import annotations

from dataclasses import replace

from had.records import Effect, EnvState, EnvStep, HarnessFacts

PLACES = ("desk 1", "drawer 1", "shelf 1")
FACTS = HarnessFacts(
    turn=5,
    max_turns=30,
    location="desk 1",
    held=(),
    places=PLACES,
    visited=("desk 1",),
    visit_first_turn=2,
    visit_num_commands=3,
    earlier_visits=(),
    failures=(),
    turns_without_new_state=0,
)


def facts(**changes: object) -> HarnessFacts:
    return replace(FACTS, **changes)  # type: ignore[arg-type]


def step(
    location: str | None = None, held: str = "", commands: str = "look", effect: Effect = Effect.CHANGED
) -> EnvStep:
    """One answer; `commands` are separated by commas."""
    state = EnvState(location, (held,) if held else (), PLACES)
    return EnvStep("", tuple(commands.split(",")), state, effect)


def refused(location: str | None = None, held: str = "", commands: str = "look") -> EnvStep:
    return step(location, held, commands, Effect.NO_EFFECT)
