"""The CSV files of a run folder, as tests compare them."""

from __future__ import annotations

import csv
from pathlib import Path

from had.callbacks.round_costs import is_measured


def table(folder: Path, name: str) -> list[dict[str, str]]:
    """A CSV file without what the machine and the number of ranks decide."""
    with open(folder / name, encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return [{k: v for k, v in row.items() if not is_measured(k)} for row in rows]
