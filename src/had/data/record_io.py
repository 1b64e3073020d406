"""Records as plain data (what JSON can hold) and back."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import asdict
from enum import StrEnum
from typing import Any

from had.records import CompactScores, ParseFailure, Record, Response, TeacherLabels, Verdict


def record_to_dict(record: Record) -> dict[str, Any]:
    """The record as nested dictionaries, tuples, strings and numbers."""
    data: dict[str, Any] = asdict(record, dict_factory=_plain_dict)
    data["labels"]["scores"] = scores_to_dict(record.labels.scores)
    return data


def scores_to_dict(scores: CompactScores | None) -> dict[str, Any] | None:
    """The scores with their bytes in base64: `<i4` ids and `<f2` log-probabilities in NumPy's words."""
    if scores is None:
        return None
    encoded = {name: b64encode(getattr(scores, name)).decode() for name in ("ids", "logprobs")}
    return {"top_k": scores.top_k, **encoded}


def _plain_dict(items: list[tuple[str, Any]]) -> dict[str, Any]:
    """Enumeration members become text: a checkpoint is read back without any class of ours."""
    return {key: str(value) if isinstance(value, StrEnum) else value for key, value in items}


def record_from_dict(data: Mapping[str, Any]) -> Record:
    """The record that `record_to_dict` wrote, also after a trip through JSON.

    Raises:
        ValueError: a field is missing, unknown or of an unknown value.
    """
    try:
        fields = dict(data)
        fields["prompt_ids"] = tuple(fields["prompt_ids"])
        fields["prompt_ids_without"] = tuple(fields["prompt_ids_without"])
        fields["student"] = _response(fields["student"])
        fields["labels"] = _labels(fields["labels"])
        return Record(**fields)
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(
            f"record {data.get('id', '?')}: not a record of this version of had ({type(error).__name__}: "
            f"{error}); collect the records again"
        ) from error


def _response(data: Mapping[str, Any]) -> Response:
    fields = dict(data)
    for name in ("ids", "logprobs", "action_span"):
        fields[name] = tuple(fields[name])
    if fields["failure"] is not None:
        fields["failure"] = ParseFailure(fields["failure"])
    return Response(**fields)


def _labels(data: Mapping[str, Any]) -> TeacherLabels:
    fields = dict(data)
    for name in ("positive", "negative"):
        if fields[name] is not None:
            fields[name] = _response(fields[name])
    if fields["verdict"] is not None:
        fields["verdict"] = Verdict(fields["verdict"])
    if fields["scores"] is not None:
        scores = fields["scores"]
        fields["scores"] = CompactScores(
            scores["top_k"], b64decode(scores["ids"]), b64decode(scores["logprobs"])
        )
    return TeacherLabels(**fields)
