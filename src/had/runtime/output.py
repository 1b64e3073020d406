"""What a program says at its end, and the seed at its beginning."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, NoReturn

import lightning
from rich.console import Console

EXIT_CANNOT_RUN = 2


def stop_with(headline: str, problems: Sequence[str], advice: str) -> NoReturn:
    """Say what is missing and end with exit code 2, before anything heavy was loaded."""
    lines = [headline, *(f"  - {problem}" for problem in problems), advice]
    print("\n".join(lines), file=sys.stderr)
    raise SystemExit(EXIT_CANNOT_RUN)


def print_rich(renderable: Any) -> None:
    """Print a table; wide enough to be read in a log file too."""
    console = Console()
    (console if console.is_terminal else Console(width=160)).print(renderable)


def seed_everything(seed: int) -> None:
    """Seed Python, NumPy and torch. Play and labels draw from seeds of their own and do not depend on this."""
    lightning.seed_everything(seed, workers=True, verbose=False)
