"""How often the imitated player wins: `python experiments/small/expert.py` ($ALFWORLD_DATA)."""

from __future__ import annotations

import random
from collections.abc import Sequence

from had.envs.alfworld.simulator import NativeEnv
from had.envs.alfworld.tasks import AlfworldTasks
from had.envs.household.source import HouseholdTasks
from had.pretraining.expert import Expert
from had.records import Task


def wins(task: Task, max_turns: int) -> bool:
    """One game of the good player."""
    env, expert = NativeEnv(), Expert(rng=random.Random(0))
    step = env.reset(task)
    expert.start(task.goal, step)
    for _ in range(max_turns):
        command = expert.decide().command
        step = env.step(command)
        expert.observe(command, step)
        if step.is_done:
            break
    return step.is_won


def report(name: str, tasks: Sequence[Task], max_turns: int) -> None:
    """Print the share of games that are won."""
    won = sum(wins(task, max_turns) for task in tasks)
    print(f"{name}: {won} of {len(tasks)} in {max_turns} turns ({100 * won / len(tasks):.1f} %)")


def main() -> None:
    """The generated games in small rooms, then the real ones."""
    generated, real = HouseholdTasks(preset="small"), AlfworldTasks()
    for split in ("seen", "unseen"):
        report(f"generated, {split}", generated.tasks(split), 20)
    for split in ("valid_seen", "valid_unseen"):
        report(f"real, {split}", real.tasks(split), 30)


if __name__ == "__main__":
    main()
