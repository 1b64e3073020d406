"""Samples of both worlds: reproducible, well formed, in both views, and with names exchanged consistently."""

from __future__ import annotations

import random
import re
from dataclasses import replace

import pytest
from small_recipes import small_recipe

from had.envs.pool import SerialPool
from had.pretraining.corpus import Corpus, Noise, Sample
from had.pretraining.player import Habits
from had.prompts.parse import ParsedAction, parse_action
from had.prompts.views import Shown, View
from had.rollout.player import Player
from scripted_actors import RandomActor, char_renderer

_LISTED = re.compile(r"^- (.+)$", re.MULTILINE)
_REPORTED = re.compile(r"[Tt]urn:? \d+ of ")  # the turn counter of the harness, in each of its wordings
_ID = re.compile(r"\b[Bb]0[0-9A-Za-z]{8}\b")
WORLDS = ("teacher", "webshop_teacher")


@pytest.fixture(scope="module", params=WORLDS)
def corpus(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    folder = tmp_path_factory.mktemp(request.param)
    recipe = small_recipe(request.param, folder)
    return recipe.corpus(recipe.tokenizer_folder(folder / "tokenizer"))


def text_of(corpus: Corpus, sample: Sample) -> tuple[str, str]:
    """(prompt, reply) of a sample."""
    decode = corpus.renderer.tokenizer.decode
    return decode(sample.ids[: sample.reply_start]), decode(sample.ids[sample.reply_start :])


def test_a_chunk_number_always_gives_the_same_samples(corpus: Corpus) -> None:
    first, again = corpus.chunk(3, 4), replace(corpus).chunk(3, 4)
    assert first == again
    assert first != corpus.chunk(4, 4) and first != replace(corpus, seed=corpus.seed + 1).chunk(3, 4)


def test_a_reply_is_a_thought_and_a_command_of_the_environment(corpus: Corpus) -> None:
    tokenizer = corpus.renderer.tokenizer
    for sample in corpus.chunk(0, 6):
        prompt, reply = text_of(corpus, sample)
        assert prompt.endswith("<|assistant|>") and sample.ids[-1] == tokenizer.eos_token_id
        body = reply.removesuffix(tokenizer.eos_token)
        assert re.fullmatch(r"Thought: [^\n]+\nAction: [^\n]+", body)
        parsed = parse_action(body)
        assert isinstance(parsed, ParsedAction)
        listed = _LISTED.findall(prompt.rpartition("<|user|>")[2])
        assert corpus.world.grammar.is_listed(parsed.action, listed), (parsed.action, listed)


def test_a_bad_player_shows_states_and_the_expert_still_comments(corpus: Corpus) -> None:
    """What is played differs from what is advised, in the same game."""
    habits = Habits(forgetfulness=1.0, carelessness=1.0)
    bad = Noise(max_rate=0.0, bad_share=1.0, bad_habits=habits)
    followed, first = {}, {}
    for noise in (Noise(max_rate=0.0), bad):
        game = replace(corpus, noise=noise, without_share=0.0, disguise_share=0.0)
        texts = [text_of(game, sample) for sample in game.chunk(2, 1)]
        advised = [reply.removesuffix("<|end|>").rpartition("Action: ")[2] for _, reply in texts]
        played = [prompt.rpartition("Action: ")[2].partition("<|end|>")[0] for prompt, _ in texts]
        first[noise.bad_share] = texts[0]
        followed[noise.bad_share] = [a == p for a, p in zip(advised[:-1], played[1:], strict=True)]
    assert first[0.0] == first[1.0]
    assert all(followed[0.0]) and not all(followed[1.0])


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_the_share_of_states_without_harness_text(corpus: Corpus, share: float) -> None:
    samples = replace(corpus, without_share=share, disguise_share=0.0).chunk(0, 24)
    without = sum(not _REPORTED.search(text_of(corpus, sample)[0]) for sample in samples)
    four_deviations = 4 * (share * (1 - share) / len(samples)) ** 0.5
    assert abs(without / len(samples) - share) <= four_deviations


def test_exchanged_names_can_be_exchanged_back(corpus: Corpus) -> None:
    source = corpus.sources[0]
    env, disguise = corpus.world.make_env(), corpus.world.disguise
    known = list(corpus.renderer.tokenizer.get_added_vocab())
    num_changed = 0
    for number, task in enumerate(source.tasks[:5]):
        step = env.reset(task)
        if any(command.startswith("search[") for command in step.commands):
            step = env.step("search[lamp]")
        names = disguise.draw(task.goal, step.state.places, known, _rng(number))
        assert len(set(names.values())) == len(names) > 0
        back = {new: old for old, new in names.items()}
        shown = Shown(step.observation, step.commands, f"You are at {step.commands[-1]}.", "Action: x")
        there = disguise.turn(shown, names, "Action: " + step.commands[-1])
        num_changed += there.observation != shown.observation
        assert disguise.text(there.observation, back) == shown.observation
        assert disguise.text(there.harness_text, back) == shown.harness_text
        assert sorted(disguise.text(command, back) for command in there.commands) == sorted(shown.commands)
        assert disguise.text(there.reply, back) == "Action: " + step.commands[-1]
        assert there.reply.removeprefix("Action: ") in there.commands
    assert num_changed == 5


def _rng(number: int) -> random.Random:
    return random.Random(number)


def test_an_exchanged_command_stands_in_the_exchanged_list(corpus: Corpus) -> None:
    """The reply, the list and the page of one state all speak of the same new names."""
    samples = replace(corpus, disguise_share=1.0).chunk(1, 6)
    for sample in samples:
        prompt, reply = text_of(corpus, sample)
        parsed = parse_action(reply.removesuffix(corpus.renderer.tokenizer.eos_token))
        assert isinstance(parsed, ParsedAction)
        state = prompt.rpartition("<|user|>")[2]
        assert corpus.world.grammar.is_listed(parsed.action, _LISTED.findall(state))
        page = {name.lower() for name in _ID.findall(state.partition("\n")[0])}
        assert {name.lower() for name in _ID.findall("\n".join(_LISTED.findall(state)))} <= page


def test_somebody_elses_episode_is_commented_state_by_state(corpus: Corpus) -> None:
    source, world = corpus.sources[0], corpus.world
    player = Player(SerialPool(world.make_env, 2), world.grammar, corpus.harness, char_renderer(), 8)
    for episode in player.play(source.tasks[:4], RandomActor(), seed=1):
        samples = replace(corpus, disguise_share=0.0, without_share=0.0).relabel(episode, _rng(0))
        assert len(samples) == len(episode.turns)
        for turn, sample in zip(episode.turns, samples, strict=True):
            prompt, _ = text_of(corpus, sample)
            assert turn.observation in prompt and turn.harness_text in prompt
            assert sample.ids[: sample.reply_start] == corpus.renderer.prompt(
                episode.task.goal, episode.turns[: turn.index], turn, View.WITH_HARNESS
            )
