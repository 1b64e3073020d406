"""Progress bars with the phase and the time left."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)


def make_progress() -> Progress:
    """A bar with description, count, elapsed and remaining time."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )


@contextmanager
def training_progress(num_steps: int) -> Iterator[Callable[[dict[str, float]], None]]:
    """A bar over optimizer steps; the yielded function takes the row of each step."""
    with make_progress() as progress:
        task = progress.add_task("imitation", total=num_steps)

        def report(row: dict[str, float]) -> None:
            description = f"imitation  reply {row['loss_reply']:.3f}  prompt {row['loss_prompt']:.3f}"
            progress.update(task, completed=row["step"], description=description)

        yield report
