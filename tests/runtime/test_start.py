"""Which checkpoint a run starts from, and what is refused."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml

from had.runtime.resume import Start, command_to_go_on, differences, find_start, flat, say_how_to_go_on

CONFIG: dict[str, Any] = {
    "seed": 0,
    "resume": None,
    "method": {"name": "had", "rho": 1.0, "losses": [{"weight": 1.0}]},
    "optimizer": {"scheduler": {"num_updates": 6}},
    "trainer": {"max_steps": 6, "devices": 1},
    "engine": {"student": {"urls": []}},
}


def changed(**values: Any) -> dict[str, Any]:
    """CONFIG with other values, by dotted name with __ for the dot."""
    config = json.loads(json.dumps(CONFIG))
    for name, value in values.items():
        *path, last = name.split("__")
        node = config
        for key in path:
            node = node[key]
        node[last] = value
    return config


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run with checkpoints at the updates 2 and 5."""
    folder = tmp_path / "run"
    (folder / "checkpoints").mkdir(parents=True)
    for update in (2, 5):
        torch.save({"global_step": update}, folder / "checkpoints" / f"update_{update:06d}.ckpt")
    (folder / "config.yaml").write_text(yaml.safe_dump(CONFIG))
    return folder


def checkpoint(run: Path, update: int) -> Path:
    return run / "checkpoints" / f"update_{update:06d}.ckpt"


def test_auto_takes_the_newest(run: Path):
    assert find_start("auto", run, CONFIG) == Start(checkpoint(run, 5), 5)


def test_auto_begins_in_an_empty_folder(tmp_path: Path):
    assert find_start("auto", tmp_path / "new", CONFIG) == Start()


def test_auto_passes_over_damaged_ones_and_says_so(run: Path, caplog: pytest.LogCaptureFixture):
    checkpoint(run, 5).write_bytes(b"")
    assert find_start("auto", run, CONFIG) == Start(checkpoint(run, 2), 2)
    assert f"{checkpoint(run, 5)} is damaged" in caplog.text
    checkpoint(run, 2).write_bytes(b"PK")
    assert find_start("auto", run, CONFIG) == Start()


def test_a_finished_run_is_finished(run: Path):
    torch.save({"global_step": 6}, checkpoint(run, 6))
    assert find_start("auto", run, CONFIG) == Start(checkpoint(run, 6), 6)  # its last evaluation is left
    (run / "summary.json").write_text("{}")
    assert find_start("auto", run, CONFIG).is_finished
    longer = changed(trainer__max_steps=9, optimizer__scheduler__num_updates=9)
    assert find_start("auto", run, longer) == Start(checkpoint(run, 6), 6)
    with pytest.raises(ValueError, match=r"nothing is left to do; raise trainer\.max_steps"):
        find_start(str(checkpoint(run, 6)), run, CONFIG)


def test_a_finished_run_without_a_checkpoint_is_not_begun_again(run: Path):
    (run / "summary.json").write_text("{}")
    for update in (2, 5):
        checkpoint(run, update).unlink()
    with pytest.raises(ValueError, match="holds a finished run"):
        find_start("auto", run, CONFIG)


def test_a_damaged_path_is_refused_and_the_intact_ones_are_named(run: Path):
    checkpoint(run, 5).write_bytes(checkpoint(run, 5).read_bytes()[:100])
    with pytest.raises(
        ValueError, match=r"update_000005\.ckpt is damaged .*intact beside it: update_000002\.ckpt"
    ):
        find_start(str(checkpoint(run, 5)), run, CONFIG)
    checkpoint(run, 2).write_bytes(b"")
    with pytest.raises(ValueError, match="no other one beside it is intact"):
        find_start(str(checkpoint(run, 5)), run, CONFIG)


def test_a_checkpoint_behind_the_end_is_refused(run: Path):
    with pytest.raises(ValueError, match=r"at update 5, behind trainer\.max_steps=4"):
        find_start(str(checkpoint(run, 5)), run.with_name("other"), changed(trainer__max_steps=4))


def test_a_used_folder_is_refused_without_resume(run: Path):
    with pytest.raises(
        ValueError, match=r"holds a run already \(checkpoints\); go on with it \(resume=auto\)"
    ):
        find_start(None, run, CONFIG)


@pytest.mark.parametrize("resume", ["auto", "path", None])
def test_another_experiment_is_refused(run: Path, resume: str | None):
    given = str(checkpoint(run, 5)) if resume == "path" else resume
    if resume is None:  # it died before its first checkpoint
        for update in (2, 5):
            checkpoint(run, update).unlink()
        (run / "checkpoints").rmdir()
        (run / "updates.csv").write_text("update,lr\n1,0.1\n")
        assert find_start(None, run, CONFIG) == Start()
    other = changed(method__rho=0.5, seed=3)
    with pytest.raises(
        ValueError, match=r"another configuration: method\.rho \(1\.0 there, 0\.5 here\); seed \(0 "
    ):
        find_start(given, run, other)


def test_in_a_folder_of_its_own_another_experiment_may_start_from_a_checkpoint(run: Path):
    start = find_start(str(checkpoint(run, 5)), run.with_name("other"), changed(method__rho=0.5))
    assert start == Start(checkpoint(run, 5), 5)


def test_what_may_differ():
    def between(**values: Any) -> list[str]:
        return differences(flat(CONFIG), flat(changed(**values)))

    assert between() == []
    assert between(resume="auto", engine__student__urls=["http://a"], trainer__devices=8) == []
    assert between(trainer__max_steps=9, optimizer__scheduler__num_updates=9) == []
    assert between(trainer__max_steps=9, optimizer__scheduler__num_updates=8) == [
        "optimizer.scheduler.num_updates"
    ]
    assert between(trainer__max_steps=3) == ["trainer.max_steps"]  # what is done cannot be taken back
    assert between(method__losses=[]) == ["method.losses", "method.losses.0.weight"]
    assert between(method__new=None) == []  # absent and null mean the same


def test_the_command_to_go_on():
    given = ["src/train.py", "experiment=had_household", "resume=old.ckpt", "hydra.run.dir=x", "a=[b c]"]
    expected = "python src/train.py experiment=had_household 'a=[b c]' hydra.run.dir=logs/run resume=auto"
    assert command_to_go_on(given, "logs/run") == expected


def test_the_exit_code_tells_a_preemption_from_a_person(run: Path, capsys: pytest.CaptureFixture[str]):
    assert say_how_to_go_on(run, signal.SIGTERM, ["src/train.py"]) == 0
    assert f"stopped by SIGTERM; the last checkpoint is {checkpoint(run, 5)}" in capsys.readouterr().out
    assert say_how_to_go_on(run, None, ["src/train.py"]) == 0
    assert say_how_to_go_on(run.parent, signal.SIGINT, ["src/train.py"]) == 130
    assert "no checkpoint yet" in capsys.readouterr().out


@pytest.mark.parametrize("text", ["{{{", "", "- a list", "\x00\x01"])
def test_an_unreadable_configuration_of_a_run_is_refused_by_name(run: Path, text: str):
    (run / "config.yaml").write_text(text)
    with pytest.raises(ValueError, match=r"the configuration of the run in .*config\.yaml.*resume=PATH"):
        find_start("auto", run, CONFIG)


def test_a_configuration_that_is_not_text_is_refused_by_name(run: Path):
    (run / "config.yaml").write_bytes(b"\xff\xfe\xff")
    with pytest.raises(ValueError, match="expected the configuration of the run"):
        find_start("auto", run, CONFIG)
