"""Processes that end together, with groups that a living object still holds."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

RANK = """
import atexit, sys
from had.runtime.departure import Departure

departure = Departure()
import torch, torch.distributed as dist

atexit.register(print, "a logger says goodbye")
rank, store, fate = int(sys.argv[1]), sys.argv[2], sys.argv[3]
dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)
kept = [dist.new_group([0, 1]) for _ in range(4)]
for group in kept:
    dist.all_reduce(torch.ones(1000), group=group)


class Grumbler:  # what a library may do when the interpreter takes it down
    def __del__(self, abort=__import__("os").abort):
        abort()


grumbler = Grumbler()
if fate == "fails" and rank == 1:
    raise SystemExit(7)
if fate == "fails":
    kept.clear()
    del grumbler.__class__.__del__
else:
    departure.complete()
print("results are saved")
"""


def end_of(rank_files: Path, fate: str) -> list[tuple[int, str]]:
    """Exit code and output of two processes."""
    command = [sys.executable, "-c", RANK]
    ranks = [
        subprocess.Popen(
            [*command, str(rank), str(rank_files / "store"), fate],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        for rank in (0, 1)
    ]
    printed = [process.communicate(timeout=300)[0] for process in ranks]
    return [(process.returncode, text) for process, text in zip(ranks, printed, strict=True)]


def test_ranks_leave_with_success_and_after_everything_else(tmp_path: Path):
    assert end_of(tmp_path, "ends") == [(0, "results are saved\na logger says goodbye\n")] * 2


@pytest.mark.slow
def test_a_rank_that_fails_before_still_fails(tmp_path: Path):
    (_, second) = end_of(tmp_path, "fails")
    assert second[0] != 0
