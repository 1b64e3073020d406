#!/usr/bin/env python3
"""Time the native simulator against the TextWorld engine, as shipped and remembering, on the same games.

usage: python experiments/simulator/bench.py [--data-dir $ALFWORLD_DATA] [--games 12] [--steps 20]

All times are CPU milliseconds of one process, so that other work on the machine does not count.
"""

from __future__ import annotations

import argparse
import os
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import mean

import textworld
from alfworld.agents.environment.alfred_tw_env import AlfredDemangler
from textworld.envs.pddl import PddlEnv

from had.envs.alfworld.game import read_game
from had.envs.alfworld.simulator import NativeEnv
from had.envs.alfworld.textworld_env import TextWorldEnv
from had.records import Task

PHASES = ("first start of a game", "start again", "step")
# The native simulator is too fast for one reading of the clock.
NATIVE_REPEATS = 50


class Stopwatch:
    """Collects CPU milliseconds by phase."""

    def __init__(self) -> None:
        self.times_ms: dict[str, list[float]] = {phase: [] for phase in PHASES}

    @contextmanager
    def phase(self, name: str, repeats: int = 1) -> Iterator[None]:
        """Time a block that does the same thing `repeats` times."""
        start = time.process_time()
        yield
        self.times_ms[name].append((time.process_time() - start) * 1000 / repeats)

    def row(self) -> list[float]:
        """The mean of each phase."""
        return [mean(self.times_ms[phase]) for phase in PHASES]


def time_native(path: Path, commands: list[str], watch: Stopwatch) -> None:
    """Reading the file is a part of the first start only."""
    env = NativeEnv()
    with watch.phase("first start of a game", NATIVE_REPEATS):
        for _ in range(NATIVE_REPEATS):
            game = read_game(path)
            env.reset_game(game)
    with watch.phase("start again", NATIVE_REPEATS):
        for _ in range(NATIVE_REPEATS):
            env.reset_game(game)
    for _ in range(NATIVE_REPEATS):
        env.reset_game(game)
        with watch.phase("step", len(commands)):
            for command in commands:
                env.step(command)


def time_engine(
    start: Callable[[], object],
    restart: Callable[[], object],
    step: Callable[[str], object],
    commands: list[str],
    watch: Stopwatch,
) -> None:
    """Time one game in an engine."""
    with watch.phase("first start of a game"):
        start()
    with watch.phase("start again"):
        restart()
    with watch.phase("step", len(commands)):
        for command in commands:
            step(command)


def choose_commands(path: Path, num_steps: int, seed: int) -> list[str]:
    """Random play of admissible commands, the same for every engine."""
    env = NativeEnv()
    answer = env.reset_game(read_game(path))
    rng = random.Random(seed)
    commands = []
    for _ in range(num_steps):
        others = [command for command in answer.commands if not command.startswith("go to")]
        commands.append(rng.choice(rng.choice([others, answer.commands])))
        answer = env.step(commands[-1])
    return commands


def main() -> None:
    """Time all three on the same games and print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data-dir", type=Path, default=os.environ.get("ALFWORLD_DATA"))
    parser.add_argument("--games", type=int, default=12)
    parser.add_argument("--steps", type=int, default=20)
    args = parser.parse_args()
    paths = sorted(Path(args.data_dir, "json_2.1.1").glob("valid_*/*/*/game.tw-pddl"))
    if not paths:
        parser.error(
            f"no games under {args.data_dir}/json_2.1.1/valid_*; give --data-dir or set $ALFWORLD_DATA"
        )
    paths = random.Random(0).sample(paths, args.games)

    watches = {name: Stopwatch() for name in ("native", "TextWorld, remembering", "TextWorld, as shipped")}
    remembering = TextWorldEnv()
    shipped = AlfredDemangler(PddlEnv(textworld.EnvInfos(admissible_commands=True, won=True)))
    for seed, path in enumerate(paths):
        commands = choose_commands(path, args.steps, seed)
        task = Task(str(path), "any", "any", "", str(path))
        time_native(path, commands, watches["native"])
        time_engine(
            lambda task=task: remembering.reset(task),
            lambda task=task: remembering.reset(task),
            remembering.step,
            commands,
            watches["TextWorld, remembering"],
        )
        time_engine(
            lambda path=path: (shipped.load(str(path)), shipped.reset()),
            shipped.reset,
            shipped.step,
            commands,
            watches["TextWorld, as shipped"],
        )

    print(f"{args.games} games, {args.steps} steps each; CPU ms, mean")
    print(f"{'':24}" + "".join(f"{phase:>24}" for phase in PHASES))
    base = watches["native"].row()
    for name, watch in watches.items():
        cells = [
            f"{value:.3f} ({value / first:,.0f}x)" for value, first in zip(watch.row(), base, strict=True)
        ]
        print(f"{name:24}" + "".join(f"{cell:>24}" for cell in cells))


if __name__ == "__main__":
    main()
