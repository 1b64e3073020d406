"""Writes catalogues of any size in the format of WebShop's own files."""

from __future__ import annotations

import json
from pathlib import Path

from had.envs.webshop.generated import make_record

HUMAN_EVERY = 10  # a human goal for every tenth product


def write_files(folder: Path, num_products: int, size: str = "all") -> None:
    """items_shuffle.json, items_ins_v2.json and items_human_ins.json (or those of the size `1000`)."""
    suffix = "" if size == "all" else f"_{size}"
    human = {}
    attributes = {}
    with (folder / f"items_shuffle{suffix}.json").open("w", encoding="utf-8") as file:
        for index in range(num_products):
            raw, annotation = make_record(0, index)
            attributes[raw["asin"]] = annotation
            if index % HUMAN_EVERY == 0:
                human[raw["asin"]] = [_instruct(raw["asin"], raw["query"], annotation["attributes"])]
            file.write(("[" if index == 0 else ",\n") + json.dumps(raw))
        file.write("]")
    (folder / f"items_ins_v2{suffix}.json").write_text(json.dumps(attributes), encoding="utf-8")
    (folder / "items_human_ins.json").write_text(json.dumps(human), encoding="utf-8")


def _instruct(asin: str, query: str, attributes: list[str]) -> dict[str, object]:
    return {
        "asin": asin,
        "instruction": f"i want {attributes[0]} {query}.",
        "instruction_attributes": attributes[:1],
        "instruction_options": [],
    }
