import json
import os

import pytest

from had.runtime.files import CsvAppender, read_csv, write_json, write_text

COLUMNS = ("update", "loss")


def test_text_is_replaced_as_a_whole(tmp_path):
    path = tmp_path / "new" / "a.txt"
    write_text(path, "eins\n")
    write_text(path, "zwei ✓\r\n")
    assert path.read_bytes() == "zwei ✓\r\n".encode()
    assert os.listdir(path.parent) == ["a.txt"]


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "a.json"
    write_json(path, {"a": 1})

    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="disk full"):
        write_json(path, {"a": 2})
    assert json.loads(path.read_text()) == {"a": 1}
    assert os.listdir(tmp_path) == ["a.json"]


@pytest.mark.parametrize(("value", "error"), [(float("nan"), ValueError), (object(), TypeError)])
def test_json_refuses_what_json_does_not_have(tmp_path, value, error):
    with pytest.raises(error, match="plain JSON data"):
        write_json(tmp_path / "a.json", {"a": value})
    assert not (tmp_path / "a.json").exists()


def test_csv_survives_restarts(tmp_path):
    path = tmp_path / "run" / "updates.csv"
    CsvAppender(path, COLUMNS).append({"update": 1, "loss": 0.1 + 0.2})
    again = CsvAppender(path, COLUMNS)
    again.append({"loss": None, "update": 2}, {"update": 3, "loss": "a,b"})
    assert path.read_text() == 'update,loss\n1,0.30000000000000004\n2,\n3,"a,b"\n'
    assert float(read_csv(path)[0]["loss"]) == 0.1 + 0.2


def test_csv_without_rows_has_a_header(tmp_path):
    path = tmp_path / "a.csv"
    CsvAppender(path, COLUMNS).append()
    assert path.read_text() == "update,loss\n"


def test_csv_refuses_other_columns(tmp_path):
    path = tmp_path / "updates.csv"
    CsvAppender(path, COLUMNS)
    with pytest.raises(
        ValueError, match=r"expected the columns update, lr .* got update, loss.*new run folder"
    ):
        CsvAppender(path, ("update", "lr"))
    with pytest.raises(ValueError, match="distinct columns"):
        CsvAppender(tmp_path / "b.csv", ("a", "a"))


def test_csv_refuses_incomplete_rows(tmp_path):
    appender = CsvAppender(tmp_path / "updates.csv", COLUMNS)
    with pytest.raises(ValueError, match=r"missing: \['loss'\]; unknown: \['lr'\]"):
        appender.append({"update": 1, "loss": 1.0}, {"update": 1, "lr": 2})
    assert read_csv(appender.path) == []


@pytest.mark.parametrize("torn", ["upd", "update,loss\n1,0.5\n2,0."])
def test_csv_drops_a_half_written_line(tmp_path, torn):
    path = tmp_path / "updates.csv"
    path.write_text(torn)
    CsvAppender(path, COLUMNS).append({"update": 2, "loss": 0.25})
    assert [row["update"] for row in read_csv(path)] == (["2"] if torn == "upd" else ["1", "2"])


def test_truncate_after(tmp_path):
    appender = CsvAppender(tmp_path / "updates.csv", COLUMNS)
    appender.append(*({"update": i, "loss": i / 3} for i in range(1, 6)))
    before = appender.path.read_text().splitlines()
    assert appender.truncate_after(3) == 2
    assert appender.path.read_text().splitlines() == before[:4]
    assert appender.truncate_after(3) == 0
    appender.append({"update": 4, "loss": 4 / 3})
    assert appender.path.read_text().splitlines() == before[:5]
    assert appender.truncate_after(0) == 4


def test_truncate_after_another_column(tmp_path):
    appender = CsvAppender(tmp_path / "rounds.csv", ("round", "episodes"))
    appender.append({"round": 0, "episodes": 16}, {"round": 1, "episodes": 16})
    assert appender.truncate_after(0, column="round") == 1
    assert [row["round"] for row in read_csv(appender.path)] == ["0"]
