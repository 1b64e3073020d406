"""Journeys: what a noisy player did in one episode, and what the expert said at every state of it."""

from __future__ import annotations

import hashlib
import json
import os
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol

from had.pretraining.player import Decision
from had.records import Effect, EnvState, EnvStep, Task
from had.runtime.files import write_text

VERSION = 1  # of the files


def default_root() -> Path:
    """`$HAD_CACHE/journeys`, or `~/.cache/had/journeys`."""
    cache = os.environ.get("HAD_CACHE")
    return (Path(cache).expanduser() if cache else Path.home() / ".cache" / "had") / "journeys"


@dataclass(frozen=True)
class Moment:
    """One state.

    Attributes:
        step: the environment's answer that led here.
        label: what the expert would do.
        before: what was done at the state before; None at the first.
    """

    step: EnvStep
    label: Decision
    before: Decision | None = None


@dataclass(frozen=True)
class Journey:
    """An episode of training play.

    Attributes:
        goal: the task text.
        names: new names of things, under which it is shown.
        wording: seed of the harness's wording.
        moments: its states; they may be played while they are read.
    """

    goal: str
    names: Mapping[str, str]
    wording: int
    moments: Iterable[Moment]


@dataclass(frozen=True)
class Route:
    """How a journey of one task is made.

    Attributes:
        task: the task.
        signature: says in words everything that decides how it is played.
        set_out: begins a new one.
        names: draws new names of things from the goal and the places of the first state.
    """

    task: Task
    signature: str
    set_out: Callable[[random.Random], Journey]
    names: Callable[[str, Sequence[str], random.Random], Mapping[str, str]]


class Journeys(Protocol):
    """Where a corpus has its journeys from."""

    def draw(self, route: Route, rng: random.Random) -> Journey:
        """A journey of one task."""


class PlayedJourneys:
    """Every journey is played when it is drawn."""

    def draw(self, route: Route, rng: random.Random) -> Journey:
        return route.set_out(rng)


@dataclass(frozen=True)
class StoredJourneys:
    """A few journeys of every task, each played once and kept on disk: for environments that are slow.

    They also make the corpus of an environment that draws without a seed the same from run to run. Names and
    wording are drawn anew at every reading.

    Attributes:
        per_task: how many of one task.
        name: of their folder; give another one when the player or the environment has changed.
        root: folder of all; by default `$HAD_CACHE/journeys` or `~/.cache/had/journeys`.
    """

    per_task: int
    name: str
    root: str | Path = field(default_factory=default_root)

    def __post_init__(self) -> None:
        if self.per_task < 1:
            raise ValueError(f"journeys.per_task: expected 1 or more, got {self.per_task}")

    def draw(self, route: Route, rng: random.Random) -> Journey:
        number = rng.randrange(self.per_task)
        key = hashlib.sha256(f"{VERSION}/{route.signature}".encode()).hexdigest()[:12]
        path = Path(self.root).expanduser() / self.name / key / route.task.id / f"{number}.json"
        if not path.exists():
            fresh = route.set_out(random.Random(f"{route.task.id}/{number}"))
            moments = [asdict(moment) for moment in fresh.moments]
            write_text(path, json.dumps({"goal": fresh.goal, "moments": moments}, ensure_ascii=False))
        plain = json.loads(path.read_text(encoding="utf-8"))
        kept = [_moment(moment) for moment in plain["moments"]]
        names = route.names(plain["goal"], kept[0].step.state.places, rng)
        return Journey(plain["goal"], names, rng.getrandbits(32), kept)


def _moment(plain: dict[str, Any]) -> Moment:
    before = None if plain["before"] is None else Decision(**plain["before"])
    return Moment(_step(plain["step"]), Decision(**plain["label"]), before)


def _step(plain: dict[str, Any]) -> EnvStep:
    state = plain["state"]
    lists = {key: tuple(state[key]) for key in ("held", "places", "details")}
    read = {"state": EnvState(state["location"], **lists), "effect": Effect(plain["effect"])}
    return EnvStep(**{**plain, **read, "commands": tuple(plain["commands"])})
