"""Makes the SQLite file of a large catalogue: products, postings and human goals, one record at a time."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import sqlite3
import zlib
from array import array
from collections import Counter
from collections.abc import Iterator
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from had.envs.webshop.analysis import terms
from had.envs.webshop.bm25 import rounded_length
from had.envs.webshop.goal import Goal, human_goals
from had.envs.webshop.json_stream import stream_array, stream_object
from had.envs.webshop.product import Product, is_sold, read_product

FORMAT = 1  # raise it when the index or what goes into it changes: older ones are then made anew
_BLOCK = 20_000  # products whose postings are collected in memory before they are written
_SCHEMA = """
    CREATE TABLE meta (key TEXT PRIMARY KEY, value BLOB);
    CREATE TABLE products (document INTEGER PRIMARY KEY, asin TEXT UNIQUE, data BLOB);
    CREATE TABLE postings (term TEXT, block INTEGER, documents BLOB, frequencies BLOB);
    CREATE TABLE goals (number INTEGER PRIMARY KEY, data TEXT);
    CREATE TEMP TABLE annotations (asin TEXT PRIMARY KEY, data TEXT);
"""

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class IndexFiles:
    """What an index is made from: the product, attribute and human instruction files."""

    products: Path
    attributes: Path
    instructions: Path

    def fingerprint(self, seed: int) -> str:
        """Changes when a file, the seed or the format changes."""
        stats = [(path, path.stat()) for path in astuple(self)]
        marks = [(str(path.resolve()), stat.st_size, stat.st_mtime_ns) for path, stat in stats]
        return hashlib.sha256(json.dumps([FORMAT, seed, marks]).encode()).hexdigest()[:16]


def open_index(files: IndexFiles, cache_dir: Path, seed: int) -> Path:
    """The index of some files; made first where it is missing.

    It is written under another name and moved into place: processes that need it at the same time at worst do
    the work twice.
    """
    path = cache_dir / f"index-{files.fingerprint(seed)}.sqlite"
    if not path.is_file():
        cache_dir.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(f".{os.getpid()}.tmp")
        try:
            _write_index(unfinished, files, seed)
            unfinished.rename(path)
        finally:
            unfinished.unlink(missing_ok=True)
    return path


def _write_index(path: Path, files: IndexFiles, seed: int) -> None:
    path.unlink(missing_ok=True)
    _log.info("webshop: making the index of %s; this is done once", files.products)
    connection = sqlite3.connect(path)
    try:
        connection.executescript(f"PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; {_SCHEMA}")
        annotations = ((asin, json.dumps(entry)) for asin, entry in stream_object(files.attributes))
        connection.executemany("INSERT OR REPLACE INTO annotations VALUES (?, ?)", annotations)
        instructions = dict(stream_object(files.instructions))
        writer = _Writer(connection, instructions, seed)
        for product in _products(connection, files.products):
            writer.add(product)
        writer.finish()
        connection.execute("CREATE INDEX postings_by_term ON postings (term)")
        connection.commit()
    finally:
        connection.close()


def _products(connection: sqlite3.Connection, path: Path) -> Iterator[Product]:
    """The products of a file, each with its annotation, every id once."""
    seen: set[str] = set()
    for raw in stream_array(path):
        if is_sold(raw) and raw["asin"] not in seen:
            seen.add(raw["asin"])
            query = "SELECT data FROM annotations WHERE asin = ?"
            row = connection.execute(query, (raw["asin"],)).fetchone()
            yield read_product(raw, json.loads(row[0]) if row else {})


def _values(record: Product | Goal) -> dict[str, Any]:
    """The fields; `dataclasses.asdict` would copy every text and take half of the time."""
    return {field.name: getattr(record, field.name) for field in fields(record)}


class _Writer:
    """Writes products as they come and their postings in blocks."""

    def __init__(self, connection: sqlite3.Connection, instructions: dict[str, Any], seed: int) -> None:
        self._connection, self._instructions, self._seed = connection, instructions, seed
        self._lengths = array("q")
        self._rounded = array("f")
        self._block: dict[str, tuple[array[int], array[int]]] = {}
        self._num_blocks = 0
        self._num_goals = 0

    def add(self, product: Product) -> None:
        """Take in the next product."""
        document = len(self._lengths)
        data = zlib.compress(json.dumps(_values(product), ensure_ascii=False).encode(), 1)
        self._connection.execute("INSERT INTO products VALUES (?, ?, ?)", (document, product.asin, data))
        counts = Counter(terms(product.search_text))
        self._lengths.append(counts.total())
        self._rounded.append(rounded_length(counts.total()))
        for term, count in counts.items():
            documents, frequencies = self._block.setdefault(term, (array("i"), array("i")))
            documents.append(document)
            frequencies.append(count)
        self._add_goals(product)
        if len(self._lengths) % _BLOCK == 0:
            self._flush()

    def finish(self) -> None:
        """Write what is still in memory."""
        self._flush()
        mean = sum(self._lengths) / max(len(self._lengths), 1)
        lengths = np.array(self._rounded, dtype="<f4").tobytes()
        self._connection.executemany(
            "INSERT INTO meta VALUES (?, ?)",
            [("num_documents", len(self._lengths)), ("mean_length", mean), ("lengths", lengths)],
        )

    def _add_goals(self, product: Product) -> None:
        annotations = self._instructions.get(product.asin)
        if annotations:
            price = product.sample_price(self._seed)
            goals = human_goals(product, annotations, price, self._seed)
            rows = [(self._num_goals + index, json.dumps(_values(goal))) for index, goal in enumerate(goals)]
            self._connection.executemany("INSERT INTO goals VALUES (?, ?)", rows)
            self._num_goals += len(rows)

    def _flush(self) -> None:
        rows = (
            (term, self._num_blocks, *(np.array(column, dtype="<i4").tobytes() for column in columns))
            for term, columns in sorted(self._block.items())
        )
        self._connection.executemany("INSERT INTO postings VALUES (?, ?, ?, ?)", rows)
        self._num_blocks += 1
        self._block = {}
        _log.info("webshop: %d products indexed", len(self._lengths))
