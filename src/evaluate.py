"""Evaluate a saved student under any harness condition: `python src/evaluate.py checkpoint=FOLDER`."""

import os
import sys
from pathlib import Path

os.environ.setdefault("GOMP_SPINCOUNT", "0")  # waiting OpenMP threads must not steal others' cores
os.environ.setdefault("HAD_ROOT", str(Path(__file__).resolve().parent.parent))

import hydra
from omegaconf import DictConfig, OmegaConf

from had.acting import ActingHalf
from had.reports.runs import read_run
from had.reports.tables import SHORT_METRICS, evaluation_table, rich_table
from had.runtime.files import write_json, write_text
from had.runtime.output import failures, print_rich, stop_with
from had.runtime.phases import PhaseBoard
from had.runtime.provenance import provenance
from had.runtime.resume import check_unused

FALLBACK = "python src/evaluate.py checkpoint=packaged:student   (two CPU cores, no download)"


@hydra.main(version_base="1.3", config_path="../configs", config_name="evaluate")
def main(config: DictConfig) -> None:
    """Play every split under every condition; the folder holds what a run writes about its last student."""
    acting = ActingHalf(config)
    checks = [
        lambda: check_unused(acting.folder),
        lambda: acting.check_device(),
        lambda: acting.student_files.locate(),
        lambda: acting.check_tasks(*acting.eval_splits),
        acting.check_harness,
    ]
    if problems := failures(checks):
        stop_with("this evaluation cannot run here:", problems, f"what runs here: {FALLBACK}")
    write_text(acting.folder / "config.yaml", OmegaConf.to_yaml(config, resolve=True))
    write_json(acting.folder / "provenance.json", provenance(config.seed, sys.argv))
    with PhaseBoard(num_updates=0) as board:
        acting.on_phase = board.phase
        acting.evaluate()
    metrics = None if config.evaluation.show_all_metrics else SHORT_METRICS
    print_rich(rich_table(evaluation_table(read_run(acting.folder), metrics)))
    print(f"run folder: {acting.folder}")


if __name__ == "__main__":
    main()
