"""The micro-batches of a step on disk: tensors as safetensors, everything else as JSON beside them.

`read_batches` brings them back, so that a step at fault can be looked into, or taken again, elsewhere.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from safetensors.torch import load_file, save
from torch import Tensor

from had.batch import SpanSet, TokenBatch
from had.runtime.files import write_json

_BATCH_TENSORS = ("tokens_BT", "positions_BT", "nodes_BT", "parents_BM")
_SPAN_TENSORS = tuple(item.name for item in fields(SpanSet) if item.name != "extra")


def write_batches(
    path: Path | str,
    batches: Sequence[TokenBatch],
    facts: Mapping[str, Any],
    notes: Sequence[Mapping[str, Any]],
) -> None:
    """Write `<path>.safetensors` and `<path>.json`.

    Tensors are named `<micro-batch>.tokens_BT`, `<micro-batch>.spans.<role>.<field>` and so on.

    Args:
        path: without an ending; folders are made.
        batches: the micro-batches.
        facts: JSON data about the step.
        notes: JSON data about each micro-batch.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    tensors = {
        f"{index}.{name}": tensor.detach().cpu().contiguous().clone()
        for index, batch in enumerate(batches)
        for name, tensor in _tensors(batch).items()
    }
    draft = path.with_name(f".{path.name}.{os.getpid()}.part")
    draft.write_bytes(save(tensors))
    os.replace(draft, path.with_name(f"{path.name}.safetensors"))
    described = [
        {
            "rows": batch.num_rows,
            "padded_tokens": batch.size,
            "records": batch.own_record_ids(),
            "tokens_scored": {role: spans.num_tokens for role, spans in batch.spans.items()},
            **note,
        }
        for batch, note in zip(batches, notes, strict=True)
    ]
    step = {"record_ids": list(batches[0].record_ids), "counts": batches[0].counts}
    write_json(path.with_name(f"{path.name}.json"), {**facts, **step, "micro_batches": described})


def read_batches(path: Path | str) -> list[TokenBatch]:
    """The micro-batches that `write_batches` wrote.

    Args:
        path: without an ending, or one of the two files.

    Raises:
        FileNotFoundError: one of the two files is missing.
    """
    stem = Path(path)
    if stem.suffix in (".json", ".safetensors"):
        stem = stem.with_suffix("")
    facts = json.loads(stem.with_name(f"{stem.name}.json").read_text("utf-8"))
    tensors = load_file(stem.with_name(f"{stem.name}.safetensors"))
    return [
        _batch({k.partition(".")[2]: v for k, v in tensors.items() if k.startswith(f"{index}.")}, facts)
        for index in range(len(facts["micro_batches"]))
    ]


def _tensors(batch: TokenBatch) -> dict[str, Tensor]:
    found: dict[str, Tensor] = {name: getattr(batch, name) for name in _BATCH_TENSORS}
    for role, spans in batch.spans.items():
        found |= {f"spans.{role}.{name}": getattr(spans, name) for name in _SPAN_TENSORS}
        found |= {f"spans.{role}.extra.{name}": value for name, value in spans.extra.items()}
    return found


def _batch(tensors: Mapping[str, Tensor], facts: Mapping[str, Any]) -> TokenBatch:
    spans: dict[str, dict[str, Tensor]] = {}
    extras: dict[str, dict[str, Tensor]] = {}
    for name, value in tensors.items():
        kind, *rest = name.split(".", 3)
        if kind == "spans":
            target = extras if rest[1] == "extra" else spans
            target.setdefault(rest[0], {})[rest[-1]] = value
    return TokenBatch(
        **{name: tensors[name] for name in _BATCH_TENSORS},
        spans={role: SpanSet(**found, extra=extras.get(role, {})) for role, found in sorted(spans.items())},
        counts=facts["counts"],
        record_ids=tuple(facts["record_ids"]),
    )
