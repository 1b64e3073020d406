"""Reading large JSON files a record at a time."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from had.envs.webshop import json_stream
from had.envs.webshop.json_stream import stream_array, stream_object

_RECORDS = [{"text": "]},{:é" * number, "list": [1, {"a": None}], "number": number} for number in range(30)]


@pytest.mark.parametrize("chunk", [1, 7, 1 << 20])
@pytest.mark.parametrize("indent", [None, 2])
def test_records_come_out_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunk: int, indent: int | None
) -> None:
    monkeypatch.setattr(json_stream, "_CHUNK_CHARACTERS", chunk)
    path = tmp_path / "records.json"
    path.write_text(json.dumps(_RECORDS, indent=indent, ensure_ascii=False), encoding="utf-8")
    assert list(stream_array(path)) == _RECORDS
    by_key = {f"key {number}": record for number, record in enumerate(_RECORDS)}
    path.write_text(f"\n {json.dumps(by_key, indent=indent)} ", encoding="utf-8")
    assert dict(stream_object(path)) == by_key


@pytest.mark.parametrize("text", ["[]", "[ ]"])
def test_empty(tmp_path: Path, text: str) -> None:
    path = tmp_path / "records.json"
    path.write_text(text, encoding="utf-8")
    assert list(stream_array(path)) == []


@pytest.mark.parametrize("text", ["", "{}", '[{"a": 1}', '[{"a": 1}, {"b"'])
def test_other_files_are_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "records.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=r"records.json: expected"):
        list(stream_array(path))
