"""Reads JSON files of gigabytes one record at a time."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

_CHUNK_CHARACTERS = 1 << 20
_SPACE = " \t\r\n"


def stream_array(path: Path) -> Iterator[Any]:
    """The records of a file that holds one JSON array of objects.

    Raises:
        ValueError: the file holds something else, or ends too early.
    """
    with path.open(encoding="utf-8") as file:
        reader = _Reader(file, path)
        reader.expect("[")
        while not reader.takes("]"):
            yield reader.value()
            reader.takes(",")


def stream_object(path: Path) -> Iterator[tuple[str, Any]]:
    """The (key, value) pairs of a file that holds one JSON object whose values are objects, arrays or texts.

    Raises:
        ValueError: the file holds something else, or ends too early.
    """
    with path.open(encoding="utf-8") as file:
        reader = _Reader(file, path)
        reader.expect("{")
        while not reader.takes("}"):
            key = reader.value()
            reader.expect(":")
            yield key, reader.value()
            reader.takes(",")


class _Reader:
    """A window on the file that grows until a whole value is in it."""

    def __init__(self, file: IO[str], path: Path) -> None:
        self._file, self._path = file, path
        self._text, self._at = "", 0
        self._decoder = json.JSONDecoder()

    def value(self) -> Any:
        """The next value."""
        self._skip_space()
        while True:
            try:
                # a number could seem to end where the window ends: the values of these files are no numbers
                value, self._at = self._decoder.raw_decode(self._text, self._at)
                return value
            except json.JSONDecodeError as error:
                if not self._grow():
                    raise ValueError(
                        f"{self._path}: expected whole JSON records, the last one is damaged or cut short "
                        f"({error.msg}); get the file again"
                    ) from error

    def takes(self, character: str) -> bool:
        """Step over a character if it comes next."""
        self._skip_space()
        is_next = self._text[self._at : self._at + 1] == character
        self._at += is_next
        return is_next

    def expect(self, character: str) -> None:
        """Step over a character that must come next."""
        if not self.takes(character):
            got = self._text[self._at : self._at + 20]
            raise ValueError(f"{self._path}: expected JSON with {character!r} here, got {got!r}")

    def _skip_space(self) -> None:
        while True:
            while self._at < len(self._text) and self._text[self._at] in _SPACE:
                self._at += 1
            if self._at < len(self._text) or not self._grow():
                return

    def _grow(self) -> bool:
        chunk = self._file.read(_CHUNK_CHARACTERS)
        self._text, self._at = self._text[self._at :] + chunk, 0
        return bool(chunk)
