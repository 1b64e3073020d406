"""The recipes for ScienceWorld in the real simulator: player, noise, samples, a model of three steps."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from had.envs.scienceworld.requirements import check_package, find_java

try:
    check_package()
    find_java()
except FileNotFoundError as error:
    pytest.skip(str(error), allow_module_level=True)

from small_recipes import small_recipe

from had.envs.scienceworld.env import ScienceWorldEnv
from had.envs.scienceworld.grammar import ScienceWorldGrammar
from had.envs.scienceworld.jvm import SHARED
from had.envs.scienceworld.tasks import ScienceWorldTasks
from had.models.student import load_tokenizer
from had.pretraining.corpus import Corpus, Noise
from had.pretraining.lab_strays import LabStrays
from had.pretraining.recipe import Recipe
from had.pretraining.scientist import Scientist
from had.prompts.parse import ParsedAction, parse_action
from had.records import Effect

pytestmark = pytest.mark.java
MINI = (
    "find-living-thing", "find-non-living-thing", "find-plant", "find-animal", "use-thermometer",
    "lifespan-longest-lived", "lifespan-shortest-lived", "lifespan-longest-lived-then-shortest-lived",
)  # fmt: skip


def lab_recipe(name: str, folder: Path, *overrides: str) -> Recipe:
    few = [f"+recipe.games.{games}.source.max_per_task={{train: 2}}" for games in ("find", "measure", "rank")]
    return small_recipe(name, folder, f"+recipe.journeys.root={folder / 'journeys'}", *few, *overrides)


@pytest.fixture(scope="module")
def env() -> Iterator[ScienceWorldEnv]:
    env = ScienceWorldEnv()
    yield env
    env.close()


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Corpus]:
    folder = tmp_path_factory.mktemp("lab")
    recipe = lab_recipe("scienceworld_teacher", folder)
    corpus = recipe.corpus(recipe.tokenizer_folder(folder / "tokenizer"))
    yield corpus
    corpus.close()


@pytest.mark.parametrize("name", MINI)
def test_the_player_ends_every_kind_of_task_within_ten_turns(env: ScienceWorldEnv, name: str) -> None:
    task = ScienceWorldTasks(names=[name]).tasks("validation")[0]
    step, player = env.reset(task), Scientist()
    player.start(step.goal, step)
    for _ in range(10):
        command = player.decide().command
        step = env.step(command)
        player.observe(command, step)
        if step.is_done:
            break
    assert step.is_won


def test_stray_commands_end_no_episode_and_are_refused_when_they_should_be(env: ScienceWorldEnv) -> None:
    task = ScienceWorldTasks(names=["find-animal"]).tasks("train")[0]
    rng = random.Random(0)
    for share in (0.0, 1.0):
        step = env.reset(task)
        effects = []
        for _ in range(25):
            step = env.step(LabStrays().draw(step, (), share, rng))
            assert not step.is_done
            effects.append(step.effect)
        assert (effects.count(Effect.NO_EFFECT) > 20) is (share == 1.0)


def test_samples_are_well_formed_and_short(corpus: Corpus) -> None:
    tokenizer, grammar = corpus.renderer.tokenizer, ScienceWorldGrammar()
    samples = replace(corpus, disguise_share=1.0).chunk(0, 4)
    assert len(samples) > 12
    for sample in samples:
        prompt = tokenizer.decode(sample.ids[: sample.reply_start])
        reply = tokenizer.decode(sample.ids[sample.reply_start : -1])
        parsed = parse_action(reply)
        assert isinstance(parsed, ParsedAction) and grammar.accepts(parsed.action)
        assert "Your task is to: " in prompt and len(sample.ids) <= 640
        if parsed.action.endswith(" box"):
            assert f" {parsed.action.rpartition(' to ')[2]}" in prompt.rpartition("Your task is to: ")[2]


def test_kept_journeys_make_the_samples_the_same_from_run_to_run(corpus: Corpus) -> None:
    """Without them they are not: the simulator draws without a seed."""
    assert corpus.chunk(1, 3) == replace(corpus).chunk(1, 3)


def test_noise_leads_to_states_that_the_player_comments_on(corpus: Corpus) -> None:
    wild = replace(corpus, noise=Noise(max_rate=1.0, repeat_probability=0.9), without_share=0.0)
    tokenizer = wild.renderer.tokenizer
    prompts = [tokenizer.decode(sample.ids[: sample.reply_start]) for sample in wild.chunk(0, 3)]
    wild.close()
    assert any("No known action matches that input." in prompt for prompt in prompts)


@pytest.mark.slow
def test_three_steps_with_own_play_leave_no_simulator(tmp_path: Path) -> None:
    tiny = (
        "recipe.architecture={hidden: 88, layers: 2, heads: 1, kv_heads: 1, head_dim: 64, intermediate: 64}",
        "recipe.schedule.num_steps=3", "+recipe.schedule.batch_tokens=1000000",
        "+recipe.schedule.chunk_episodes=2", "+recipe.schedule.num_warmup=1",
        "recipe.schedule.own_play_start=1", "recipe.own_play_episodes=2",
        *(f"recipe.games.{games}.max_turns=3" for games in ("find", "measure", "rank")),
    )  # fmt: skip
    users = SHARED._num_users
    reported: list[dict[str, float]] = []
    recipe = lab_recipe("scienceworld_teacher", tmp_path, *tiny)
    recipe.train(tmp_path, reported.append)
    assert [row["samples"] > 6 for row in reported] == [False, True, True]  # two episodes, then own play
    assert SHARED._num_users == users
    student = lab_recipe("scienceworld_student", tmp_path / "student")
    vocabulary = load_tokenizer(student.tokenizer_folder(tmp_path / "student" / "tokenizer")).get_vocab()
    assert vocabulary == load_tokenizer(tmp_path / "tokenizer").get_vocab()
