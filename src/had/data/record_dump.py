"""Writes every record with the update that used it, so that a run's numbers can be recomputed elsewhere."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

from had.data.layouts import is_valid
from had.data.record_io import scores_to_dict
from had.records import Record, Response
from had.runtime.files import write_text


class RecordDump:
    """`records/round_NNNN.jsonl`, one line per record; written again when a later update uses one of them.

    Args:
        folder: where the files go.
    """

    def __init__(self, folder: Path | str) -> None:
        self._folder = Path(folder)
        self._open: dict[int, dict[str, dict[str, Any]]] = {}  # round -> record id -> row

    def add(self, records: Iterable[Record]) -> None:
        """New records, not used yet."""
        for record in records:
            self._open.setdefault(record.round, {})[record.id] = _row(record)

    def use(self, records: Iterable[Record], update: int) -> None:
        """These records were drawn for this update (from 1)."""
        for record in records:
            row = self._open.setdefault(record.round, {}).setdefault(record.id, _row(record))
            row["update"] = update

    def write(self, keep_rounds: Collection[int]) -> None:
        """Write the rounds that are open, then forget all but `keep_rounds`: nothing can use the others."""
        for number, rows in sorted(self._open.items()):
            lines = [json.dumps(row) + "\n" for row in rows.values()]
            write_text(self._folder / f"round_{number:04d}.jsonl", "".join(lines))
        self._open = {number: rows for number, rows in self._open.items() if number in keep_rounds}

    def state_dict(self) -> dict[str, Any]:
        """The open rounds, as plain data."""
        return {"open": {number: dict(rows) for number, rows in self._open.items()}}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over the state that `state_dict` returned."""
        self._open = {number: dict(rows) for number, rows in state["open"].items()}


def _row(record: Record) -> dict[str, Any]:
    labels = record.labels
    return {
        "id": record.id,
        "episode": record.episode_id,
        "turn": record.turn_index,
        "round": record.round,
        "policy_version": record.policy_version,
        "actor": record.actor,
        "prompt_ids": list(record.prompt_ids),
        "prompt_ids_without": list(record.prompt_ids_without),
        "student": _response(record.student),
        "positive": _response(labels.positive),
        "negative": _response(labels.negative),
        "verdict": _text(labels.verdict),
        "is_valid": is_valid(record),
        "scores": scores_to_dict(labels.scores),
        "judgement": labels.judgement,
        "extra": labels.extra,
        "update": None,
    }


def _response(response: Response | None) -> dict[str, Any] | None:
    """Ids and boundaries: `ids[:action_start]` is the reasoning, `[action_start:action_end]` the action."""
    if response is None:
        return None
    start, end = response.action_span
    return {
        "ids": list(response.ids),
        "action_start": start,
        "action_end": end,
        "action": response.action,
        "failure": _text(response.failure),
    }


def _text(value: str | None) -> str | None:
    """An enumeration's value as plain text, which any reader of a checkpoint can load."""
    return None if value is None else str(value)
