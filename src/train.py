"""Train: compose, check, build, fit, evaluate, summarise. `python src/train.py experiment=had_household`."""

import os
import sys
from pathlib import Path

os.environ.setdefault("GOMP_SPINCOUNT", "0")  # waiting OpenMP threads must not steal others' cores
os.environ.setdefault("HAD_ROOT", str(Path(__file__).resolve().parent.parent))

import hydra
from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf

from had.assembly import FALLBACK, Assembly
from had.planning.show import show_plan
from had.reports.runs import read_run
from had.reports.tables import SHORT_METRICS, before_after_table, rich_table
from had.runtime.departure import Departure
from had.runtime.output import print_rich, quiet_lightning, seed_everything, stop_with
from had.runtime.phases import PhaseBoard
from had.runtime.provenance import note_start, provenance
from had.runtime.ranks import is_first, launch_name, take_own_gpu
from had.runtime.resume import say_how_to_go_on
from had.runtime.stop import Stopped, StopRequest
from had.runtime.sweep import run_alone

if name := launch_name():
    os.environ.setdefault("HAD_LAUNCH", name)  # the run folder is named so in place of the time


@hydra.main(version_base="1.3", config_path="../configs", config_name="train")
def main(config: DictConfig) -> int | None:
    """One run, or one job of a sweep, which is a run in a process of its own."""
    job = HydraConfig.get()
    if job.mode is RunMode.MULTIRUN:
        return run_alone(__file__, [*job.overrides.task, *job.overrides.hydra], job.runtime.output_dir)
    train(config)
    return None


def train(config: DictConfig) -> None:
    """One run, from its configuration to its summary; or its plan alone."""
    if config.plan:
        return show_plan(config)
    assembly = Assembly(config)
    if missing := assembly.problems():
        stop_with("this experiment cannot run here:", missing, f"what runs here: {FALLBACK}")
    if assembly.start.is_finished:
        print(f"{assembly.folder} holds this run, finished; nothing is left to do")
        return show_result(config, assembly.folder)
    if is_first():
        facts = {**provenance(config.seed, sys.argv), "models": assembly.origins()}
        note_start(assembly.folder, OmegaConf.to_yaml(config, resolve=True), facts, assembly.start.checkpoint)
    departure = Departure()
    take_own_gpu()
    quiet_lightning()
    seed_everything(config.seed)
    with StopRequest() as stop:
        try:
            fit(assembly, stop)
        except Stopped:
            departure.leave()
            raise SystemExit(say_how_to_go_on(assembly.folder, stop.signal, sys.argv)) from None
    if is_first():
        show_result(config, assembly.folder)
    departure.complete()


def fit(assembly: Assembly, stop: StopRequest) -> None:
    """Train, evaluate, save."""
    config, start = assembly.config, assembly.start
    with PhaseBoard(config.trainer.max_steps, start.num_updates, is_shown=is_first()) as board:
        assembly.acting.on_phase = board.phase
        trainer = assembly.trainer(stop)
        trainer.fit(assembly.module, datamodule=assembly.datamodule, ckpt_path=start.checkpoint)
        assembly.conclude(trainer)
        stop.hold()
        assembly.finish(trainer)


def show_result(config: DictConfig, folder: Path) -> None:
    """Print what training changed."""
    metrics = None if config.evaluation.show_all_metrics else SHORT_METRICS
    print_rich(rich_table(before_after_table(read_run(folder), metrics=metrics)))
    print(f"run folder: {folder}")


if __name__ == "__main__":
    main()
