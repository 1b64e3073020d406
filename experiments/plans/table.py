"""The plans of all experiments of the paper as a Markdown table.

`python experiments/plans/table.py [KEY=VALUE …]`.

Each row is what `python src/train.py experiment=<name> plan=true KEY=VALUE …` prints in full.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from hydra import compose, initialize_config_dir

from had.planning.plan import GIB, Plan
from had.planning.text import HOUR, memory_parts, problems, totals
from had.reports.tables import Table, markdown

ROOT = Path(__file__).resolve().parents[2]
METHODS = ("had", "sopd", "opd", "sage_opd", "guided_opd", "sopd_2x", "opd_2x")
ENVIRONMENTS = ("alfworld", "webshop", "scienceworld")
DEFAULTS = ("planning.gpus=8", "engine=vllm_servers", "paths.output_dir=/tmp")
HEADERS = (
    "experiment", "playing, GiB", "training, GiB", "rounds", "updates", "tokens played a round",
    "teacher answers", "their tokens", "evaluation episodes", "hours (play, label, train, evaluate)", "fits",
)  # fmt: skip


def row(experiment: str, overrides: list[str]) -> tuple[str, ...]:
    """The plan of one experiment."""
    plan = Plan(compose("train", [f"experiment={experiment}", *DEFAULTS, *overrides]))
    work, times = plan.work, plan.times
    memory = (f"{total / GIB:.2f}" for total in totals(memory_parts(plan)))
    parts = ", ".join(f"{seconds / HOUR:.1f}" for seconds in vars(times).values())
    counts = (
        work.rounds, work.updates, work.tokens_played, work.teacher_answers,
        work.teacher_answers * work.reply, work.eval_episodes,
    )  # fmt: skip
    numbers = (f"{number:,.0f}" for number in counts)
    verdict = "no" if problems(plan) else "yes"
    return (f"`{experiment}`", *memory, *numbers, f"{times.total / HOUR:.1f} ({parts})", verdict)


def main() -> None:
    """Parse the command line and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("overrides", nargs="*")
    overrides = parser.parse_args().overrides
    os.environ.setdefault("HAD_ROOT", str(ROOT))
    with initialize_config_dir(str(ROOT / "configs"), version_base="1.3"):
        rows = [row(f"{method}_{env}", overrides) for env in ENVIRONMENTS for method in METHODS]
    print(markdown(Table("Plans", HEADERS, tuple(rows))))


if __name__ == "__main__":
    main()
