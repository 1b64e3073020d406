"""The search against Lucene's own rankings and against a slow, obvious reference."""

from __future__ import annotations

import json
import math
import random
from collections import Counter
from pathlib import Path

import pytest

from had.envs.webshop.analysis import terms
from had.envs.webshop.bm25 import K1, B, MemoryPostings, rank, rounded_length
from had.envs.webshop.shop import Shop

_LUCENE = json.loads((Path(__file__).parent / "lucene_rankings.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("query", list(_LUCENE))
def test_the_best_ten_are_those_of_lucene(query: str, mini: Shop) -> None:
    """Rankings made by Lucene itself: experiments/webshop/compare_search.py --mini."""
    assert mini.catalogue.search(query, 10) == _LUCENE[query]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The shoes of a Runner", "shoe runner"),
        ("women's women’s", "women women"),
        ("us xs s as", "us xs s"),  # short words are not stemmed; "as" is a stop word
        ("technology assembly incredibly", "technolog assembl incred"),
        ("easy-to-use 1,000 3.5mm red,40 d.o.n", "easi us 1,000 3.5mm red 40 d.o.n"),
        ("usb_c __ ★ 充电", "usb_c ★ 充 电"),
        ("biology apology", "biologi apolog"),
        ("", ""),
    ],
)
def test_terms(text: str, expected: str) -> None:
    assert " ".join(terms(text)) == expected


def _reference(texts: list[str], query: str) -> list[tuple[float, int]]:
    """Document by document, term by term, from the formula in the docstring of `rank`."""
    documents = [Counter(terms(text)) for text in texts]
    mean = sum(document.total() for document in documents) / len(documents)
    scored = []
    for index, document in enumerate(documents):
        score = 0.0
        for term in terms(query):
            holding = sum(term in other for other in documents)
            idf = math.log(1 + (len(documents) - holding + 0.5) / (holding + 0.5))
            norm = K1 * (1 - B + B * rounded_length(document.total()) / mean)
            score += idf * document[term] / (document[term] + norm)
        if score > 0:
            scored.append((score, index))
    return sorted(scored, key=lambda pair: (-pair[0], pair[1]))


def test_ranking_is_the_formula() -> None:
    draw = random.Random(0)
    words = [f"w{number}" for number in range(40)]
    texts = [" ".join(draw.choices(words, k=draw.randint(3, 80))) for _ in range(60)]
    postings = MemoryPostings(texts)
    for _ in range(8):
        query = " ".join(draw.choices(words, k=draw.randint(1, 6)))
        expected = _reference(texts, query)[:10]
        scores = dict((index, score) for score, index in _reference(texts, query))
        found = rank(postings, query, 10)
        # equal up to the order of scores that differ in the last digits only
        assert [scores[index] for index in found] == pytest.approx([score for score, _ in expected], rel=1e-6)


def test_equal_scores_keep_the_order_of_the_catalogue() -> None:
    postings = MemoryPostings(["red lamp", "blue sofa", "red lamp", "red lamp"])
    assert rank(postings, "lamp", 2) == [0, 2]
    assert rank(postings, "lamp", 10) == [0, 2, 3]


def test_nothing_is_found_without_a_known_term() -> None:
    postings = MemoryPostings(["red lamp"])
    assert rank(postings, "the of and", 10) == []
    assert rank(postings, "sofa", 10) == []
    assert rank(MemoryPostings([]), "sofa", 10) == []


def test_rounded_lengths_keep_four_leading_bits_beyond_24() -> None:
    assert [rounded_length(length) for length in (0, 23, 24, 39, 40, 41, 42, 56, 59, 60, 88)] == [
        0, 23, 24, 39, 40, 40, 42, 56, 56, 60, 88,
    ]  # fmt: skip
    for length in range(3000):
        assert rounded_length(length) <= length
