"""What `summary.json` says of a finished run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from had.callbacks.evaluation import EvaluationCallback
from had.callbacks.run_tables import RunTables


def run_summary(
    identity: Mapping[str, Any],
    num_updates: int,
    evaluation: EvaluationCallback,
    tables: RunTables,
    data: Any,
) -> dict[str, Any]:
    """The summary as plain data.

    Args:
        identity: method, env and seed.
        num_updates: optimizer updates taken.
        evaluation: before and after.
        tables: with the sums over all rounds.
        data: the datamodule.
    """
    seconds = {**data.seconds, **{name: watch.seconds for name, watch in tables.watches.items()}}
    return {
        **identity,
        "updates": num_updates,
        "before": evaluation.before,
        "after": evaluation.after,
        "differences": evaluation.differences,
        "seconds": {name: round(value, 2) for name, value in seconds.items()},
        "costs": tables.costs(),
        "records": data.buffer.counts(),
        "teacher": dict(vars(data.collector.labeler.teacher.usage)),
        "disagreement": tables.disagreement.compute(),
    }
