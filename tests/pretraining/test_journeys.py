"""Journeys kept on disk: read as they were played, played anew when what decides them changes."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest
from small_recipes import small_recipe

from had.pretraining.corpus import Corpus
from had.pretraining.journeys import Journey, Route, StoredJourneys
from had.pretraining.player import Habits


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    folder = tmp_path_factory.mktemp("corpus")
    recipe = small_recipe("teacher", folder)
    return recipe.corpus(recipe.tokenizer_folder(folder / "tokenizer"))


def stored(corpus: Corpus, root: Path) -> Corpus:
    return replace(corpus, journeys=StoredJourneys(1, "games", root))


def test_what_is_read_is_what_was_played(corpus: Corpus, tmp_path: Path) -> None:
    task, num_played = corpus.sources[0].tasks[3], 0

    def set_out(rng: random.Random) -> Journey:
        nonlocal num_played
        num_played += 1
        return corpus._set_out(task, 20, rng)

    route = Route(task, "20 turns", set_out, corpus._names)
    journeys = StoredJourneys(1, "games", tmp_path)
    first, again = (journeys.draw(route, random.Random(seed)) for seed in (1, 2))
    directly = corpus._set_out(task, 20, random.Random(f"{task.id}/0"))
    assert num_played == 1
    assert list(first.moments) == list(again.moments) == list(directly.moments)
    assert first.goal == directly.goal and first.wording != again.wording


def test_a_stored_corpus_gives_the_same_samples_without_an_environment(
    corpus: Corpus, tmp_path: Path
) -> None:
    played = stored(corpus, tmp_path).chunk(2, 4)

    def no_env() -> None:
        raise AssertionError("an environment was made")

    read = replace(stored(corpus, tmp_path), world=replace(corpus.world, make_env=no_env))
    assert read.chunk(2, 4) == played


def test_another_player_plays_anew(corpus: Corpus, tmp_path: Path) -> None:
    stored(corpus, tmp_path).chunk(2, 1)
    replace(stored(corpus, tmp_path), habits=Habits(forgetfulness=0.5)).chunk(2, 1)
    replace(stored(corpus, tmp_path), seed=7, without_share=0.9).chunk(0, 1)
    assert len(list((tmp_path / "games").iterdir())) == 2  # one folder for each player


def test_at_least_one_journey_of_a_task() -> None:
    with pytest.raises(ValueError, match=r"journeys\.per_task: expected 1 or more, got 0"):
        StoredJourneys(0, "games")


def test_a_closed_corpus_makes_another_environment(corpus: Corpus) -> None:
    fresh = replace(corpus)
    before = fresh.chunk(0, 1)
    fresh.close()
    fresh.close()
    assert fresh.chunk(0, 1) == before
