"""How short ScienceWorld's tasks are with teleportation, and how often the imitated player ends them.

python experiments/scienceworld/expert.py paths [TRIES]   gold paths of all 30 tasks
python experiments/scienceworld/expert.py play [TASKS]    the player on the tasks of env=scienceworld_mini
"""

from __future__ import annotations

import random
import re
import sys
from collections.abc import Sequence

from had.envs.scienceworld.env import ScienceWorldEnv
from had.envs.scienceworld.tasks import SPLIT_SIZES, SPLITS, ScienceWorldTasks
from had.pretraining.player import Habits
from had.pretraining.scientist import Scientist
from had.records import Task

MAX_TURNS = 15
MINI = (
    "find-living-thing", "find-non-living-thing", "find-plant", "find-animal", "use-thermometer",
    "lifespan-longest-lived", "lifespan-shortest-lived", "lifespan-longest-lived-then-shortest-lived",
)  # fmt: skip
STUDENT = Habits(forgetfulness=0.5, carelessness=0.35)  # of configs/recipe/scienceworld_student.yaml
_WALK = re.compile(r"(?:(?:open door to|go to) [^;]+;)+")


def turns_of(path: Sequence[str]) -> int:
    """Commands of a gold path in which every walk is one teleport."""
    return _WALK.sub("teleport;", "".join(f"{command};" for command in path)).count(";")


def paths(env: ScienceWorldEnv, num_tries: int) -> None:
    """Print the length of gold paths, the first training variations of every task."""
    print(f"| task | training variations | turns of the gold path, {num_tries} of them |\n|---|---|---|")
    for name, (num_train, _, _) in SPLIT_SIZES.items():
        turns = []
        for task in ScienceWorldTasks(names=[name]).tasks("train")[:num_tries]:
            turns.append(turns_of(list(env.load(task, with_gold_path=True).getGoldActionSequence())))
        print(f"| {name} | {num_train} | {', '.join(map(str, turns))} |", flush=True)


def played(env: ScienceWorldEnv, task: Task, habits: Habits) -> int | None:
    """Turns in which the player succeeds, or None."""
    step = env.reset(task)
    player = Scientist(habits, random.Random(task.id))
    player.start(step.goal, step)
    for turn in range(1, MAX_TURNS + 1):
        command = player.decide().command
        step = env.step(command)
        if step.is_done:
            return turn if step.is_won else None
        player.observe(command, step)
    return None


def play(env: ScienceWorldEnv, num_tasks: int) -> None:
    """Print how often two players succeed, and in how many turns."""
    print(f"| task | player | {' | '.join(SPLITS)} | turns |\n|---|---|---|---|---|---|")
    for name in MINI:
        for who, habits in (("good", Habits()), ("student's habits", STUDENT)):
            cells, turns = [], list[int]()
            for split in SPLITS:
                tasks = ScienceWorldTasks(dict.fromkeys(SPLITS, num_tasks), [name]).tasks(split)
                won = [count for task in tasks if (count := played(env, task, habits)) is not None]
                cells.append(f"{len(won)} of {len(tasks)}")
                turns += won
            mean = f"{sum(turns) / len(turns):.1f}" if turns else "–"
            print(f"| {name} | {who} | {' | '.join(cells)} | {mean} |", flush=True)


def main() -> None:
    """Run what the command line names."""
    what, number = [*sys.argv[1:], "play"][0], int(sys.argv[2]) if len(sys.argv) > 2 else 10
    env = ScienceWorldEnv()
    try:
        (paths if what == "paths" else play)(env, number)
    finally:
        env.close()


if __name__ == "__main__":
    main()
