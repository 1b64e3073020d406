"""Compares the shop's search with Lucene on the 1,000 products: overlap of the best 10, same best, time.

Usage: python experiments/webshop/compare_search.py LUCENE_JAR [WEBSHOP_DATA]   (needs Java 11 or newer)
       python experiments/webshop/compare_search.py LUCENE_JAR --mini > rankings.json

The second form writes Lucene's rankings of the generated catalogue: tests/envs/webshop/lucene_rankings.json.
"""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from had.envs.webshop.bm25 import MemoryPostings, rank
from had.envs.webshop.generated import GeneratedShop
from had.envs.webshop.product import is_sold, read_product

NUM_QUERIES = 300
SEED = 0
MINI_QUERIES = ["the red shoes", "lamp lamps lamp", "women's boots, size 10.", "quick-drying shoes", "x"]


def read_products(data: Path) -> list:
    """The products of the 1,000-product file."""
    raws = json.loads((data / "items_shuffle_1000.json").read_text(encoding="utf-8"))
    return [read_product(raw, {}) for raw in raws if is_sold(raw)]


def draw_queries(data: Path) -> list[str]:
    """Whole instructions of people, and runs of two to five words of them."""
    generator = random.Random(SEED)
    texts = json.loads((data / "human_goals.json").read_text(encoding="utf-8"))
    queries = generator.sample(texts, NUM_QUERIES)
    for index in range(NUM_QUERIES // 2):
        words = queries[index].split()
        first = generator.randrange(len(words))
        queries[index] = " ".join(words[first : first + generator.randint(2, 5)])
    return [" ".join(query.lower().split()) for query in queries]


def ask_lucene(jar: str, texts: list[str], queries: list[str]) -> list[list[tuple[int, float]]]:
    """Lucene's ranking for each query: (document, score), best first."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "texts").write_text("\n".join(texts), encoding="utf-8")
        (folder / "queries").write_text("\n".join(queries), encoding="utf-8")
        source = Path(__file__).with_name("Rank.java")
        files = [str(folder / file) for file in ("texts", "queries", "ranks")]
        subprocess.run(["java", "-Xmx512m", "-cp", jar, str(source), *files], check=True)
        lines = (folder / "ranks").read_text(encoding="utf-8").splitlines()
    pairs = [[pair.split(":") for pair in line.split()] for line in lines]
    return [[(int(document), float(score)) for document, score in row] for row in pairs]


def write_mini_rankings(jar: str) -> None:
    """Print Lucene's best ten of the generated catalogue for some queries."""
    shop = GeneratedShop().open()
    texts = [shop.catalogue.product(asin).search_text for asin in shop.catalogue.asins]
    queries = [goal.text.lower() for goal in shop.goals[:20]] + MINI_QUERIES
    ranked = ask_lucene(jar, texts, queries)
    rows = {
        query: [shop.catalogue.asins[document] for document, _ in row[:10]]
        for query, row in zip(queries, ranked, strict=True)
    }
    print(json.dumps(rows, indent=1))


def main() -> None:
    """Print the comparison."""
    jar = sys.argv[1]
    if sys.argv[2:] == ["--mini"]:
        write_mini_rankings(jar)
        return
    data = Path(sys.argv[2] if len(sys.argv) > 2 else "../shared/data/webshop")
    # Java reads the texts line by line: nothing that ends a line may be in them
    texts = [re.sub(r"\s+", " ", product.search_text) for product in read_products(data)]
    queries = draw_queries(data)
    theirs = ask_lucene(jar, texts, queries)
    postings = MemoryPostings(texts)
    started = time.process_time()
    ours = [rank(postings, query, 50) for query in queries]
    seconds = time.process_time() - started
    overlaps, tops, same = [], [], []
    for mine, scored in zip(ours, theirs, strict=True):
        other = [document for document, _ in scored]
        if other:
            overlaps.append(len(set(mine[:10]) & set(other[:10])) / min(10, len(other)))
            tops.append(mine[0] == other[0])
            same.append(mine == other)
    print(f"queries with results   {len(overlaps)} of {len(queries)}")
    print(f"overlap of the best 10 {np.mean(overlaps):.4f}")
    print(f"same best product      {np.mean(tops):.4f}")
    print(f"same 50 in same order  {np.mean(same):.4f}")
    print(f"ms per query           {1000 * seconds / len(queries):.2f}")


if __name__ == "__main__":
    main()
