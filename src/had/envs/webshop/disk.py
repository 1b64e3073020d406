"""`DiskCatalogue`: products and search from one SQLite file, for catalogues that do not fit into memory."""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from had.envs.webshop.bm25 import rank
from had.envs.webshop.goal import Goal
from had.envs.webshop.product import Product, product_failure

_GOAL_TUPLES = ("attributes", "options", "option_texts")
_CACHE_KIB = 64 * 1024  # of the database, per process


class DiskCatalogue:
    """A `Catalogue` over the file that `disk_index` made; it is also the `Postings` of its own search.

    In memory are four bytes per product and SQLite's cache.
    """

    def __init__(self, path: Path) -> None:
        address = f"{path.resolve().as_uri()}?mode=ro"
        # threads may share it when they take turns
        self._connection = sqlite3.connect(address, uri=True, check_same_thread=False)
        self._connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
        meta = dict(self._connection.execute("SELECT key, value FROM meta"))
        self.num_documents: int = meta["num_documents"]
        self.mean_length: float = meta["mean_length"]
        self.lengths: NDArray[np.float32] = np.frombuffer(meta["lengths"], dtype="<f4")

    def product(self, asin: str) -> Product:
        row = self._connection.execute("SELECT data FROM products WHERE asin = ?", (asin,)).fetchone()
        if row is None:
            raise product_failure(asin)
        return _as_product(json.loads(zlib.decompress(row[0])))

    def search(self, query: str, limit: int) -> list[str]:
        find = "SELECT asin FROM products WHERE document = ?"
        documents = rank(self, query, limit)
        return [self._connection.execute(find, (document,)).fetchone()[0] for document in documents]

    def of(self, term: str) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        find = "SELECT documents, frequencies FROM postings WHERE term = ? ORDER BY block"
        rows = self._connection.execute(find, (term,)).fetchall()
        documents, frequencies = (b"".join(row[column] for row in rows) for column in (0, 1))
        return np.frombuffer(documents, dtype="<i4"), np.frombuffer(frequencies, dtype="<i4")

    def read_goals(self) -> Iterator[Goal]:
        """The human goals, in catalogue order."""
        for (text,) in self._connection.execute("SELECT data FROM goals ORDER BY number"):
            plain = json.loads(text)
            yield Goal(**plain | {key: tuple(plain[key]) for key in _GOAL_TUPLES})


def _as_product(plain: dict[str, Any]) -> Product:
    for key in ("bullets", "price_range", "attributes"):
        plain[key] = tuple(plain[key])
    plain["options"] = tuple((name, tuple(values)) for name, values in plain["options"])
    return Product(**plain)
