"""The context limits of the environments, kept with real vocabularies, and what a long history loses."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hydra import compose, initialize_config_dir

from chat_formats import FORMATS, renderer_of
from had.prompts.render import PromptTooLongError, Renderer
from had.prompts.views import Shown, View
from had.runtime.instantiate import build

CONFIGS = Path(__file__).resolve().parents[2] / "configs"
os.environ.setdefault("HAD_ROOT", str(CONFIGS.parent))
LIMITS = {  # turns, tokens of a reply, tokens of the context: the paper's table of environments
    "alfworld": (30, 2048, 24576),
    "webshop": (15, 512, 24576),
    "scienceworld": (15, 128, 16384),
}
COMMANDS = tuple(f"take plate {number} from countertop 1" for number in range(40))
NOW = Shown("You arrive at countertop 1.", COMMANDS, "Current turn: 30.")


def long_turns(num_words: int) -> list[Shown]:
    """Thirty answered turns of about so many words each."""
    seen = " ".join(["On the countertop 1, you see a plate 2, and a mug 3."] * (num_words // 12))
    return [Shown(f"Turn {turn}. {seen}", COMMANDS, "", f"Action: go {turn}") for turn in range(30)]


def composed(env: str, *overrides: str):
    if not (CONFIGS / "env" / f"{env}.yaml").is_file():
        pytest.skip(f"needs configs/env/{env}.yaml")
    with initialize_config_dir(str(CONFIGS), version_base="1.3"):
        return compose("train", [f"env={env}", *overrides])


def turns_in(text: str) -> list[int]:
    return [turn for turn in range(30) if f"Turn {turn}. " in text]


@pytest.mark.parametrize("env", LIMITS)
def test_the_limits_are_the_papers(env: str):
    config = composed(env).env
    assert (config.max_turns, config.max_reply_tokens, config.max_context_tokens) == LIMITS[env]


@pytest.mark.parametrize("env", LIMITS)
@pytest.mark.parametrize("name", ["qwen3", "gemma4_edge"])
def test_a_long_history_loses_its_oldest_turns_and_leaves_room_for_the_reply(env: str, name: str):
    config = composed(env)
    room = config.env.max_context_tokens - config.env.max_reply_tokens
    whole = renderer_of(FORMATS[name](), build(config.prompt, history_turns=None))
    past = long_turns(1200 if name != "gemma4_edge" else 400)
    assert len(whole.prompt("win.", past, NOW, View.WITH_HARNESS)) > room

    cut = Renderer(whole.tokenizer, whole.format, room, whole.end_ids)
    pages = {view: cut.prompt("win.", past, NOW, view) for view in View}
    texts = {view: whole.tokenizer.decode(ids) for view, ids in pages.items()}
    kept = turns_in(texts[View.WITH_HARNESS])
    assert len(pages[View.WITH_HARNESS]) <= room and 0 < len(kept) < 30
    assert kept == list(range(30 - len(kept), 30)) == turns_in(texts[View.WITHOUT_HARNESS])
    one_more = whole.prompt("win.", past[-len(kept) - 1 :], NOW, View.WITH_HARNESS)
    assert len(one_more) > room  # no turn was dropped in vain
    with_harness = texts[View.WITH_HARNESS]
    assert with_harness.count("Your task is to: win.") and all(line in with_harness for line in COMMANDS)
    assert texts[View.WITHOUT_HARNESS] == with_harness.replace("\nCurrent turn: 30.", "")


def test_a_state_that_is_too_long_by_itself_is_an_error_not_a_cut_state():
    renderer = renderer_of(FORMATS["qwen3"](), max_prompt_tokens=300)
    with pytest.raises(PromptTooLongError, match="at most 300 tokens"):
        renderer.prompt("win.", long_turns(100), NOW, View.WITH_HARNESS)
