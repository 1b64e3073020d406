"""Records as plain data (what JSON can hold) and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from had.records import ParseFailure, Record, Response, TeacherLabels, TopKScores, Verdict


def record_to_dict(record: Record) -> dict[str, Any]:
    """The record as nested dictionaries, lists, strings and numbers."""
    return asdict(record)


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
        fields["scores"] = TopKScores(
            ids=tuple(tuple(row) for row in fields["scores"]["ids"]),
            logprobs=tuple(tuple(row) for row in fields["scores"]["logprobs"]),
        )
    return TeacherLabels(**fields)
