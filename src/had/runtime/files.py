"""Files of a run folder that survive a crash: atomic text and JSON, and CSV that a restart continues."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from had.runtime.ranks import is_first


def write_text(path: Path | str, text: str) -> None:
    """Replace a file as a whole: a reader or a crash sees the old content or the new one, never a part."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    # beside the target, because a rename is atomic only within one file system
    draft = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with open(draft, "w", encoding="utf-8", newline="") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, path)
    finally:
        draft.unlink(missing_ok=True)


def write_json(path: Path | str, value: Any) -> None:
    """Replace a JSON file as a whole, indented, keys in the given order.

    Raises:
        ValueError: NaN or infinity, which JSON does not have.
        TypeError: an object that JSON does not have.
    """
    try:
        text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)
    except (ValueError, TypeError) as error:
        raise type(error)(
            f"expected plain JSON data (finite numbers, text, lists, dicts) for {path}, got: {error}; "
            "store None for a number that does not exist"
        ) from error
    write_text(path, text + "\n")


class CsvAppender:
    """A CSV file with fixed columns that grows by rows and can be continued by another process.

    Every `append` opens, writes, syncs and closes: nothing is lost when the process dies, and a half-written
    last line of a dead process is dropped at the next start. Floats are written with all their digits, None
    as an empty cell. Of several ranks the first one writes, and the others touch nothing.
    """

    def __init__(self, path: Path | str, columns: Sequence[str]) -> None:
        """Open or create the file.

        Args:
            path: the file; folders are made.
            columns: names of the columns, in order.

        Raises:
            ValueError: the file exists with other columns, or two columns have the same name.
        """
        self.path = Path(path)
        self.columns = tuple(columns)
        if len(set(self.columns)) < len(self.columns):
            raise ValueError(f"expected distinct columns for {self.path}, got {', '.join(self.columns)}")
        if not is_first():
            return
        text = self.path.read_text(encoding="utf-8") if self.path.exists() else ""
        complete = text[: text.rfind("\n") + 1]
        if not complete:
            write_text(self.path, _format([self.columns]))
            return
        found = tuple(next(csv.reader(io.StringIO(complete, newline=""))))
        if found != self.columns:
            raise ValueError(
                f"expected the columns {', '.join(self.columns)} in {self.path}, "
                f"got {', '.join(found)}: the file was written by another version of the program; "
                "use a new run folder or move the file away"
            )
        if complete != text:
            write_text(self.path, complete)

    def append(self, *rows: Mapping[str, Any]) -> None:
        """Add rows; all of them reach the file in one write.

        Raises:
            ValueError: a row lacks a column or has one too many.
        """
        for row in rows:
            self._check(row)
        if not is_first():
            return
        with open(self.path, "a", encoding="utf-8", newline="") as file:
            file.write(_format([[row[name] for name in self.columns] for row in rows]))
            file.flush()
            os.fsync(file.fileno())

    def _check(self, row: Mapping[str, Any]) -> None:
        missing, unknown = set(self.columns) - set(row), set(row) - set(self.columns)
        if missing or unknown:
            raise ValueError(
                f"expected a row with exactly the columns of {self.path}; "
                f"missing: {sorted(missing) or 'none'}; unknown: {sorted(unknown) or 'none'}"
            )

    def replace(self, row: Mapping[str, Any], column: str) -> None:
        """Put a row in the place of the one with the same `column`, in one write; add it where there is none.

        Raises:
            ValueError: the row lacks a column or has one too many.
        """
        self._check(row)
        if not is_first():
            return
        cells = [list(old.values()) for old in read_csv(self.path) if old[column] != str(row[column])]
        write_text(self.path, _format([self.columns, *cells, [row[name] for name in self.columns]]))

    def truncate_after(self, last: int, column: str = "update") -> int:
        """Drop the rows whose `column` is above `last`: what follows the checkpoint that is resumed.

        Returns:
            The number of dropped rows.
        """
        if not is_first():
            return 0
        rows = read_csv(self.path)
        kept = [row for row in rows if int(row[column]) <= last]
        if len(kept) < len(rows):
            cells = [[row[name] for name in self.columns] for row in kept]
            write_text(self.path, _format([self.columns, *cells]))
        return len(rows) - len(kept)


def read_csv(path: Path | str) -> list[dict[str, str]]:
    """The rows of a CSV file with a header, every cell as text.

    Raises:
        FileNotFoundError: there is no such file.
    """
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _format(rows: Iterable[Iterable[Any]]) -> str:
    buffer = io.StringIO(newline="")
    csv.writer(buffer, lineterminator="\n").writerows(rows)
    return buffer.getvalue()
