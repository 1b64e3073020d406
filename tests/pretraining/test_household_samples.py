"""The samples of the household recipes are pinned: what the shipped models learned from can be made again."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Sequence
from pathlib import Path

import pytest
from small_recipes import small_recipe

from had.envs.alfworld.grammar import HouseholdGrammar
from had.envs.alfworld.simulator import NativeEnv
from had.envs.pool import SerialPool
from had.harness.compose import Harness
from had.pretraining.corpus import Corpus, Sample
from had.prompts.views import PromptFormat
from had.rollout.player import Player
from scripted_actors import RandomActor, char_renderer

# of the texts of all prompts and replies; where their tokens are cut is the tokenizer's affair
CHUNKS = {"teacher": "5c1c7db13fa85f9d", "student": "e871af5236a44448"}
RELABELLED = {"teacher": "dca4ee4919b8fa51", "student": "276c9c162401b888"}


def digest(samples: Sequence[Sample], corpus: Corpus) -> str:
    decode = corpus.renderer.tokenizer.decode
    texts = [
        part
        for sample in samples
        for part in (decode(sample.ids[: sample.reply_start]), decode(sample.ids[sample.reply_start :]))
    ]
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:16]


def random_play(corpus: Corpus, harness: Harness) -> list[Sample]:
    """The expert's replies at the states of a random player, as own play is relabelled."""
    player = Player(SerialPool(NativeEnv, 4), HouseholdGrammar(), harness, char_renderer(PromptFormat()), 20)
    episodes = player.play(corpus.sources[0].tasks[:6], RandomActor(), seed=3)
    return [sample for episode in episodes for sample in corpus.relabel(episode, random.Random(5))]


@pytest.mark.parametrize("name", CHUNKS)
def test_a_chunk_and_relabelled_play_are_what_they_were(name: str, tmp_path: Path) -> None:
    recipe = small_recipe(name, tmp_path)
    corpus = recipe.corpus(recipe.tokenizer_folder(tmp_path / "tokenizer"))
    samples = corpus.chunk(0, 6) + corpus.chunk(7, 3)
    assert len(samples) > 60
    assert digest(samples, corpus) == CHUNKS[name]
    assert digest(random_play(corpus, recipe.harness), corpus) == RELABELLED[name]
