"""Runs of the real program with a tiny pair, shared by the tests beside this file."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts import run_script
from tiny_pair import make_pair


@pytest.fixture(scope="session")
def tiny_run(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Overrides that make a run of seconds: a tiny pair, few and short episodes, few tasks."""
    folder = tmp_path_factory.mktemp("tiny")
    student, teacher = make_pair(folder)
    return [
        f"student.files.path={student}",
        f"teacher.files.path={teacher}",
        f"env.tasks.cache_dir={folder / 'games'}",
        "env.tasks.num_train=100",
        # fixed here, so that tuning a default does not change the stored numbers
        "prompt=full_history",
        "prompt.history_turns=2",
        "optimizer.optimizer.lr=1e-3",
        "optimizer.scheduler.num_warmup=5",
        "env.max_turns=5",
        "env.max_reply_tokens=8",
        "data.tasks_per_round=6",
        "data.batch_size=12",
        "data.dump_records=true",
        "trainer.max_steps=6",
        "evaluation.num_tasks=3",
        "evaluation.num_validation_tasks=3",
        "evaluation.every_num_updates=2",
    ]


@pytest.fixture(scope="session")
def finished_run(tiny_run: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of one run."""
    folder = tmp_path_factory.mktemp("run") / "first"
    assert run_script("train.py", *tiny_run, f"hydra.run.dir={folder}") == 0
    return folder
