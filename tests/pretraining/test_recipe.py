"""A recipe makes a model: a few steps, and a folder that loads and plays."""

from __future__ import annotations

import dataclasses
import logging
from pathlib import Path

import pytest
import torch
from small_recipes import small_recipe

from had.models.student import load_model, load_tokenizer
from had.pretraining.corpus import Noise
from had.pretraining.trainer import COLUMNS
from had.runtime.files import read_csv

# one batch is a whole chunk, so that the second chunk, with own play, is reached in three steps
TINY = (
    "recipe.architecture={hidden: 88, layers: 2, heads: 1, kv_heads: 1, head_dim: 64, intermediate: 64}",
    "recipe.schedule.num_steps=3", "+recipe.schedule.batch_tokens=1000000",
    "+recipe.schedule.chunk_episodes=2", "+recipe.schedule.num_warmup=1",
    "recipe.schedule.own_play_start=1", "recipe.own_play_episodes=2",
)  # fmt: skip
WORLDS = {"teacher": "recipe.games.small.max_turns=3", "webshop_teacher": "recipe.games.mini.max_turns=3"}


@pytest.mark.parametrize("name", WORLDS)
def test_three_steps_give_a_folder_that_loads(name: str, tmp_path: Path) -> None:
    recipe = small_recipe(name, tmp_path, *TINY, WORLDS[name])
    reported: list[dict[str, float]] = []
    folder = recipe.train(tmp_path, reported.append)
    assert [row["step"] for row in reported] == [1, 2, 3]
    assert reported[1]["samples"] > 6 >= reported[0]["samples"]  # two episodes of three turns, then own play
    logged = read_csv(tmp_path / "pretrain.csv")
    assert len(logged) == 3 and set(logged[0]) == set(COLUMNS)

    model, tokenizer = load_model(folder), load_tokenizer(folder)
    sample = recipe.corpus(tmp_path / "tokenizer").chunk(0, 1)[0]
    assert tokenizer.decode(sample.ids) == load_tokenizer(tmp_path / "tokenizer").decode(sample.ids)
    made = model.generate(torch.tensor([sample.ids[: sample.reply_start]]), max_new_tokens=4, do_sample=False)
    assert made.shape[1] > sample.reply_start
    assert model.config.eos_token_id == tokenizer.eos_token_id

    weights = {name: value.clone() for name, value in model.state_dict().items()}
    again = load_model(recipe.train(tmp_path)).state_dict()  # it is finished: nothing is trained
    assert all(torch.equal(weights[key], again[key]) for key in weights)


def test_the_number_of_parameters_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "had.pretraining.recipe"):
        recipe = small_recipe("student", tmp_path, *TINY[:4], WORLDS["teacher"])
        folder = recipe.train(tmp_path)
    count = sum(parameter.numel() for parameter in load_model(folder).parameters())
    assert f"parameters: {count}" in caplog.text


def test_both_models_of_a_pair_share_their_tokenizer(tmp_path: Path) -> None:
    for pair in (("teacher", "student"), ("webshop_teacher", "webshop_student")):
        vocabularies = [
            load_tokenizer(
                small_recipe(name, tmp_path / name).tokenizer_folder(tmp_path / name / "tokenizer")
            ).get_vocab()
            for name in pair
        ]
        assert vocabularies[0] == vocabularies[1]


def test_a_second_stage_goes_on_from_the_first(tmp_path: Path) -> None:
    first = small_recipe("teacher", tmp_path, *TINY, WORLDS["teacher"]).train(tmp_path / "first")
    second = small_recipe(
        "teacher_finish", tmp_path, *TINY, WORLDS["teacher"], f"recipe.start_from={first}",
        "recipe.schedule.num_steps=0",
    ).train(tmp_path / "second")  # fmt: skip
    weights = load_model(second).state_dict()
    assert all(torch.equal(weights[key], value) for key, value in load_model(first).state_dict().items())


def test_a_second_stage_without_a_first_says_so(tmp_path: Path) -> None:
    recipe = small_recipe("teacher_finish", tmp_path, f"recipe.start_from={tmp_path}")
    with pytest.raises(FileNotFoundError, match=r"recipe\.start_from: .* holds no saved model"):
        recipe.train(tmp_path)


def test_a_second_stage_draws_other_games_whatever_the_seed(tmp_path: Path) -> None:
    drawn = []
    for name in ("teacher", "teacher_finish"):
        recipe = small_recipe(name, tmp_path, "seed=3")
        drawn.append(recipe.corpus(recipe.tokenizer_folder(tmp_path / "tokenizer")).seed)
    assert drawn == [3, 4]


def test_common_commands_are_thinned_out_and_the_others_kept(tmp_path: Path) -> None:
    verbs = []
    for share in (1.0, 0.0):
        overrides = ("recipe.common=[go]", f"recipe.common_share={share}")
        recipe = small_recipe("teacher_finish", tmp_path, *overrides)
        corpus = recipe.corpus(recipe.tokenizer_folder(tmp_path / "tokenizer"))
        corpus.noise = Noise(max_rate=0.0)
        replies = [corpus.renderer.tokenizer.decode(s.ids[s.reply_start :]) for s in corpus.chunk(0, 4)]
        verbs.append([reply.partition("Action: ")[2].partition(" ")[0] for reply in replies])
    assert "go" in verbs[0] and "go" not in verbs[1] and len(verbs[1]) > 8


def test_sharpness_is_in_the_saved_model_and_not_in_the_training(tmp_path: Path) -> None:
    recipe = small_recipe("teacher", tmp_path, *TINY[:4], WORLDS["teacher"])
    plain = load_model(recipe.train(tmp_path)).state_dict()
    checkpoint = torch.load(tmp_path / "pretrain.pt", weights_only=True)["model"]["model.norm.weight"]
    sharp = load_model(dataclasses.replace(recipe, sharpness=2.0).train(tmp_path)).state_dict()
    again = torch.load(tmp_path / "pretrain.pt", weights_only=True)["model"]["model.norm.weight"]
    assert torch.equal(again, checkpoint)
    changed = [name for name in plain if not torch.equal(plain[name], sharp[name])]
    assert changed == ["model.norm.weight"]
    assert torch.equal(sharp["model.norm.weight"], 2 * plain["model.norm.weight"])
    with pytest.raises(ValueError, match=r"sharpness: expected a factor > 0, got 0"):
        dataclasses.replace(recipe, sharpness=0)
