"""What `plan=true` does: print the plan, keep it, and refuse one that cannot work."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from had.planning.plan import Plan
from had.planning.text import plan_text, problems
from had.runtime.files import write_text
from had.runtime.output import stop_with


def show_plan(config: Any) -> None:
    """Print the plan of a run, write it to `plan.txt` in its folder, and exit with 2 if it cannot work."""
    plan = Plan(config)
    text = plan_text(plan)
    write_text(Path(config.paths.output_dir) / "plan.txt", text + "\n")
    print(text)
    if found := problems(plan):
        stop_with("this plan cannot work:", found, "a GPU: planning.gpu_memory_gib=80 planning.gpus=8")
