"""Indexes the large catalogue in a folder and buys twenty things in it.

Prints the number of goals and the peak memory in KiB. Usage: python play_on_disk.py FOLDER
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2]))

from had.envs.webshop.env import WebShopEnv
from had.envs.webshop.original import OriginalShop
from had.envs.webshop.tasks import WebShopTasks
from peak_memory import peak_kib


def main() -> None:
    """Play."""
    folder = Path(sys.argv[1])
    source = OriginalShop(str(folder), size="all", goals="human", cache_dir=str(folder / "cache"))
    env = WebShopEnv(source)
    for task in WebShopTasks(source, num_test=20).tasks("test"):
        env.reset(task)
        step = env.step(f"search[{task.goal}]")
        assert "Total results: 50" in step.observation
        env.step(step.commands[3])
        assert env.step("click[buy now]").is_done
    print(len(source.open().goals), peak_kib())


if __name__ == "__main__":
    main()
