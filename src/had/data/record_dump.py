"""Writes every record with the update that used it, so that a run's numbers can be recomputed elsewhere."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from had.data.layouts import is_valid
from had.records import Record, Response


class RecordDump:
    """`records/round_NNNN.jsonl`, one line per record; rewritten when a later update uses a record of that round.

    Args:
        folder: where the files go.
    """

    def __init__(self, folder: Path | str) -> None:
        self._folder = Path(folder)
        self._open: dict[int, dict[str, tuple[Record, int | None]]] = {}

    def add(self, records: Iterable[Record]) -> None:
        """New records, not used yet."""
        for record in records:
            self._open.setdefault(record.round, {})[record.id] = (record, None)

    def use(self, records: Iterable[Record], update: int) -> None:
        """These records were drawn for this update (from 1)."""
        for record in records:
            self._open.setdefault(record.round, {})[record.id] = (record, update)

    def write(self, keep_from_round: int) -> None:
        """Write the rounds that are open, then forget those before `keep_from_round` (nothing can use them any more)."""
        self._folder.mkdir(parents=True, exist_ok=True)
        for number, rows in sorted(self._open.items()):
            lines = [json.dumps(_row(record, update)) for record, update in rows.values()]
            (self._folder / f"round_{number:04d}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
        self._open = {number: rows for number, rows in self._open.items() if number >= keep_from_round}


def _row(record: Record, update: int | None) -> Mapping[str, object]:
    labels = record.labels
    return {
        "id": record.id,
        "episode": record.episode_id,
        "turn": record.turn_index,
        "round": record.round,
        "policy_version": record.policy_version,
        "actor": record.actor,
        "prompt_ids": record.prompt_ids,
        "prompt_ids_without": record.prompt_ids_without,
        "student": _response(record.student),
        "positive": _response(labels.positive),
        "negative": _response(labels.negative),
        "verdict": labels.verdict,
        "is_valid": is_valid(record),
        "judgement": labels.judgement,
        "update": update,
    }


def _response(response: Response | None) -> Mapping[str, object] | None:
    """Ids and boundaries: `ids[:action_start]` is the reasoning (the context z_s), `ids[action_start:action_end]` the action."""
    if response is None:
        return None
    start, end = response.action_span
    return {
        "ids": response.ids,
        "action_start": start,
        "action_end": end,
        "action": response.action,
        "failure": response.failure,
    }
