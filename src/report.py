"""Report on finished runs: `python src/report.py runs='logs/train/*/*'` writes tables, figures, a page."""

import os
from pathlib import Path

os.environ.setdefault("HAD_ROOT", str(Path(__file__).resolve().parent.parent))

import hydra
from omegaconf import DictConfig

from had.reports.report import PAGE_FILE, find_runs, write_report
from had.reports.tables import rich_table
from had.runtime.output import print_rich, stop_with


@hydra.main(version_base="1.3", config_path="../configs", config_name="report")
def main(config: DictConfig) -> None:
    """Find the runs, write the report, print the overview."""
    folder = Path(config.paths.output_dir)
    try:
        patterns = [config.runs] if isinstance(config.runs, str) else list(config.runs)
        overview = write_report(find_runs(patterns), folder)
    except (OSError, ValueError) as error:
        stop_with("there is nothing to report on:", [str(error)], "runs=FOLDER, a glob in quotes, or [A,B]")
    print_rich(rich_table(overview))
    print(f"report: {folder / PAGE_FILE}")


if __name__ == "__main__":
    main()
