"""Set the thresholds of the harness before training: `python src/calibrate.py env=household_small`."""

import os
import sys
from pathlib import Path

os.environ.setdefault("GOMP_SPINCOUNT", "0")  # waiting OpenMP threads must not steal the cores of others
os.environ.setdefault("HAD_ROOT", str(Path(__file__).resolve().parent.parent))

import hydra
from omegaconf import DictConfig, OmegaConf

from had.acting import ActingHalf
from had.harness.calibration import Calibration, calibrate
from had.records import Episode
from had.reports.tables import Table, rich_table
from had.runtime.files import write_json, write_text
from had.runtime.instantiate import build
from had.runtime.output import failures, print_rich, stop_with
from had.runtime.progress import make_progress
from had.runtime.provenance import provenance

NO_SPLIT = (
    "env.validation_split: expected a split that is held out of training, got {split!r}; for the real games "
    "take env.validation_split=validation env.tasks.num_validation=200"
)


@hydra.main(version_base="1.3", config_path="../configs", config_name="calibrate")
def main(config: DictConfig) -> None:
    """Play the validation tasks with the student, choose the thresholds, print and write them."""
    acting = ActingHalf(config)
    split = config.env.validation_split
    if split is None or split == config.env.train_split or split in config.env.eval_splits:
        problem = NO_SPLIT.format(split=split)
        stop_with("calibration cannot run here:", [problem], "evaluation tasks are never used for it")
    checks = (acting.student_files.locate, lambda: acting.check_tasks(split), lambda: acting.harness)
    if problems := failures(checks):
        stop_with("calibration cannot run here:", problems, "see the README for data and models")
    write_text(acting.folder / "config.yaml", OmegaConf.to_yaml(config, resolve=True))
    write_json(acting.folder / "provenance.json", provenance(config.seed, sys.argv))
    episodes = play(config, acting)
    try:
        settings = config.calibration
        chosen = calibrate(
            episodes, acting.harness, build(settings.candidates), settings.max_share, settings.min_episodes
        )
    except ValueError as error:
        stop_with("no thresholds were chosen:", [str(error)], f"run folder: {acting.folder}")
    print_rich(rich_table(table(chosen)))
    write_text(acting.folder / "harness.yaml", chosen.harness.to_yaml())
    write_json(acting.folder / "calibration.json", as_json(chosen))
    print(" ".join(f"harness.parts.{name}={value}" for name, value in chosen.thresholds.items()))
    print(f"the harness with these thresholds: {acting.folder / 'harness.yaml'}")


def play(config: DictConfig, acting: ActingHalf) -> list[Episode]:
    """Episodes of the student on the validation tasks."""
    tasks = list(acting.tasks(config.env.validation_split, config.num_tasks)) * config.num_repeats
    actor, player = acting.actor(config.temperature), acting.player(config.num_slots)
    with make_progress() as progress:
        bar = progress.add_task("play validation tasks", total=len(tasks))
        return player.play(
            tasks, actor, seed=config.seed, prefix="calibrate", condition=acting.condition,
            progress=lambda done, total: progress.update(bar, completed=done),
        )  # fmt: skip


def as_json(chosen: Calibration) -> dict[str, object]:
    """The outcome without the harness, which has a file of its own."""
    trials = [vars(trial) for trial in chosen.trials]
    plain = {key: value for key, value in vars(chosen).items() if key != "harness"}
    return {**plain, "thresholds": dict(chosen.thresholds), "trials": trials}


def table(chosen: Calibration) -> Table:
    """How often each warning would fire with each value."""
    rows = [
        (
            trial.name,
            str(trial.value),
            f"{trial.num_fired} / {trial.num_turns}",
            f"{trial.share:.1%}",
            "chosen" if trial.is_chosen else "",
        )
        for trial in chosen.trials
    ]
    return Table(
        f"Warnings on {chosen.num_turns} turns of {chosen.num_successes} successful episodes "
        f"({chosen.num_episodes} played)",
        ("threshold", "value", "turns", "share", ""),
        tuple(rows),
    )


if __name__ == "__main__":
    main()
