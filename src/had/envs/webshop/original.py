"""`OriginalShop`: a shop from WebShop's own files, unchanged."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from had.envs.webshop.catalogue import MemoryCatalogue
from had.envs.webshop.disk import DiskCatalogue
from had.envs.webshop.disk_index import IndexFiles, open_index
from had.envs.webshop.goal import OPTION_RULES, human_goals, in_original_order, synthetic_goals
from had.envs.webshop.nouns import TitleNouns
from had.envs.webshop.product import Product, is_sold, read_product
from had.envs.webshop.shop import Shop

# size -> product file, attribute file
_FILES = {
    "1000": ("items_shuffle_1000.json", "items_ins_v2_1000.json"),
    "all": ("items_shuffle.json", "items_ins_v2.json"),
}
_HUMAN_FILE = "items_human_ins.json"
_NOUNS_FILE = "name_nouns_1k.json"  # optional
GOALS = ("synthetic", "human")

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class OriginalShop:
    """A `ShopSource` of the original's files.

    Attributes:
        data_dir: the folder with the files; $WEBSHOP_DATA when None.
        size: `1000`, the small version, in memory; or `all`, 1.18 million products, from an index on
            disk that is made on first use.
        goals: `synthetic` (every option combination; small version only) or `human` (people's instructions).
        option_rule: how a synthetic goal's options are matched, see `goal.OPTION_RULES`.
        seed: decides sampled prices and price limits.
        cache_dir: where the index of the large version is kept; `$HAD_CACHE/webshop` or
            `~/.cache/had/webshop` when None.

    Raises:
        ValueError: unknown size or goals, or synthetic goals of the large version, which are too many.
    """

    data_dir: str | None = None
    size: str = "1000"
    goals: str = "synthetic"
    option_rule: str = "values"
    seed: int = 0
    cache_dir: str | None = None

    def __post_init__(self) -> None:
        allowed = {"size": tuple(_FILES), "goals": GOALS, "option_rule": OPTION_RULES}
        for key, values in allowed.items():
            if getattr(self, key) not in values:
                raise ValueError(f"webshop: expected {key} in {list(values)}, got {getattr(self, key)!r}")
        if self.size == "all" and self.goals == "synthetic":
            raise ValueError(
                "webshop: the large version has millions of synthetic goals, which are not kept; "
                "use goals=human, or size=1000"
            )

    @property
    def name(self) -> str:
        return "webshop"

    def open(self) -> Shop:
        return _open(self)

    def path(self, file: str) -> Path:
        """One of the original's files.

        Raises:
            FileNotFoundError: it is not there.
        """
        folder = self.data_dir or os.environ.get("WEBSHOP_DATA")
        path = Path(folder).expanduser() / file if folder else Path(file)
        if folder is None or not path.is_file():
            looked = f"{path} is not a file" if folder else "neither env.data_dir nor $WEBSHOP_DATA is set"
            wanted = ", ".join([*_FILES[self.size], _HUMAN_FILE])
            flag = "small" if self.size == "1000" else "all"
            raise FileNotFoundError(
                f"no WebShop data: {looked}. Expected one folder with {wanted}: get them with "
                f"`./setup.sh -d {flag}` of github.com/princeton-nlp/WebShop and set $WEBSHOP_DATA, or shop "
                "in the embedded catalogue instead: env=webshop_mini"
            )
        return path


@lru_cache(maxsize=4)
def _open(source: OriginalShop) -> Shop:
    shop = _open_memory(source) if source.size == "1000" else _open_disk(source)
    _log.info("webshop: %s products, %d %s goals", source.size, len(shop.goals), source.goals)
    return shop


def _open_memory(source: OriginalShop) -> Shop:
    products_file, attributes_file = _FILES[source.size]
    annotations = _read(source.path(attributes_file))
    catalogue = MemoryCatalogue(_products(_read(source.path(products_file)), annotations))
    human = _read(source.path(_HUMAN_FILE)) if source.goals == "human" else {}
    goals = []
    for product in map(catalogue.product, catalogue.asins):
        price = product.sample_price(source.seed)
        if source.goals == "human":
            goals += human_goals(product, human.get(product.asin, ()), price, source.seed)
        else:
            annotation = annotations.get(product.asin, {})
            goals += synthetic_goals(product, annotation, price, source.seed, source.option_rule)
    return Shop(catalogue, in_original_order(goals), _nouns(source), source.seed)


def _open_disk(source: OriginalShop) -> Shop:
    products, attributes = (source.path(file) for file in _FILES[source.size])
    files = IndexFiles(products, attributes, source.path(_HUMAN_FILE))
    catalogue = DiskCatalogue(open_index(files, _cache_dir(source), source.seed))
    return Shop(catalogue, in_original_order(catalogue.read_goals()), _nouns(source), source.seed)


def _products(raws: list[dict[str, Any]], annotations: Mapping[str, Any]) -> Iterator[Product]:
    return (read_product(raw, annotations.get(raw["asin"], {})) for raw in raws if is_sold(raw))


def _read(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(
            f"{path}: expected JSON ({error}); get the file again with the original's setup script"
        ) from error


def _nouns(source: OriginalShop) -> TitleNouns:
    try:
        path = source.path(_NOUNS_FILE)
    except FileNotFoundError:
        _log.info("webshop: no %s; the nouns of titles follow our own rule", _NOUNS_FILE)
        return TitleNouns()
    return TitleNouns.from_file(path)


def _cache_dir(source: OriginalShop) -> Path:
    if source.cache_dir:
        return Path(source.cache_dir).expanduser()
    base = os.environ.get("HAD_CACHE")
    return (Path(base) if base else Path.home() / ".cache" / "had") / "webshop"
