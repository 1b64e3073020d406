"""What a program says at its end, and the seed at its beginning."""

from __future__ import annotations

import logging
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import lightning
from rich.console import Console

from had.runtime.ranks import is_first

EXIT_CANNOT_RUN = 2


def failures(checks: Sequence[Callable[[], object]]) -> list[str]:
    """The messages of the checks that fail for a reason that a person can remove; each message once."""
    found = []
    for check in checks:
        try:
            check()
        except (OSError, ValueError, RuntimeError) as error:
            found.append(str(error))
    return list(dict.fromkeys(found))


def stop_with(headline: str, problems: Sequence[str], advice: str) -> NoReturn:
    """Say what is missing and end with exit code 2, before anything heavy was loaded."""
    lines = [headline, *(f"  - {problem}" for problem in problems), advice]
    if is_first():
        print("\n".join(lines), file=sys.stderr)
    raise SystemExit(EXIT_CANNOT_RUN)


def print_rich(renderable: Any) -> None:
    """Print a table; wide enough to be read in a log file too."""
    console = Console()
    (console if console.is_terminal else Console(width=160)).print(renderable)


def quiet_lightning() -> None:
    """Let Lightning speak up for warnings only, less those about what we do on purpose."""
    logging.getLogger("lightning.pytorch").setLevel(logging.WARNING)
    expected = (
        "The dirpath has changed",  # a resumed run has a folder of its own
        "Checkpoint directory .* exists and is not empty",  # or goes on in the old one
        "You're resuming from a checkpoint that ended before the epoch ended",  # rounds differ in length
        r".*isinstance\(treespec, LeafSpec\)",
    )
    for message in expected:
        warnings.filterwarnings("ignore", message=message)


def seed_everything(seed: int) -> None:
    """Seed Python, NumPy and torch. Play and labels have seeds of their own and do not depend on this."""
    lightning.seed_everything(seed, workers=True, verbose=False)
