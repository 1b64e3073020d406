"""The truncation rule, the chat template of the small tokenizer, and settings that cannot work."""

from __future__ import annotations

import pytest

from char_tokenizer import END_IDS, CharTokenizer
from had.pretraining.tokenizer import build_tokenizer
from had.prompts.render import PromptTooLongError, Renderer
from had.prompts.views import PromptFormat, Shown, View
from scripted_actors import char_renderer

PAST = [Shown(f"saw {n}", ("a",), f"HARNESS {n}", f"Action: do {n}") for n in range(5)]
NOW = Shown("see now", ("look", "go"), "HARNESS NOW")
SHORT = PromptFormat(system="Play.")


def text(limit: int, view: View = View.WITH_HARNESS, prompt: PromptFormat = SHORT) -> str:
    return CharTokenizer().decode(char_renderer(prompt, limit).prompt("win.", PAST, NOW, view))


WHOLE = text(10**6)
BARE = text(10**6, prompt=PromptFormat(system="Play.", history_turns=0))


def test_a_prompt_that_just_fits_is_whole() -> None:
    assert text(len(WHOLE)) == WHOLE
    assert all(f"saw {n}" in WHOLE and f"do {n}" in WHOLE for n in range(5))


def test_the_oldest_turns_go_first_and_task_and_state_stay() -> None:
    turn = len("<user>saw 0</><assistant>Action: do 0</>")
    for limit in range(len(BARE), len(WHOLE)):
        cut = text(limit)
        num_kept = (limit - len(BARE)) // turn
        assert len(cut) <= limit
        assert [n for n in range(5) if f"saw {n}" in cut] == list(range(5 - num_kept, 5))
        assert [n for n in range(5) if f"do {n}" in cut] == list(range(5 - num_kept, 5))
        assert cut.startswith("<system>Play.\n\nYour task is to: win.</>")
        assert cut.endswith("see now\nHARNESS NOW\nAdmissible commands:\nlook\ngo</><assistant>")


def test_with_less_room_than_task_and_state_there_is_no_prompt() -> None:
    assert text(len(BARE)) == BARE
    for view in View:
        with pytest.raises(PromptTooLongError, match=f"at most {len(BARE) - 1} tokens, got {len(BARE)}"):
            text(len(BARE) - 1, view)


@pytest.mark.parametrize("mode", ["last", "all"])
def test_both_views_keep_the_same_turns(mode: str) -> None:
    prompt = PromptFormat(system="Play.", harness_in_history=mode)
    for limit in range(len(BARE), len(WHOLE) + 70):
        pages = [text(limit, view, prompt) for view in View]
        kept = [[n for n in range(5) if f"do {n}" in page] for page in pages]
        assert kept[0] == kept[1]
        assert "HARNESS" not in pages[1]


def test_messages_become_the_small_tokenizers_chat() -> None:
    tokenizer = build_tokenizer(["see now look go"], ["mug 1"], ["Thought:"], vocab_size=300)
    renderer = Renderer(tokenizer, SHORT, 1000, frozenset([tokenizer.eos_token_id]))
    ids = renderer.prompt("win.", PAST[:1], NOW, View.WITHOUT_HARNESS)
    assert tokenizer.decode(ids) == (
        "<|system|>Play.\n\nYour task is to: win.<|end|><|user|>saw 0<|end|><|assistant|>Action: do 0<|end|>"
        "<|user|>see now\nAdmissible commands:\nlook\ngo<|end|><|assistant|>"
    )
    assert ids.count(tokenizer.eos_token_id) == 4
    response = renderer.response([*tokenizer.encode("Action: go"), tokenizer.eos_token_id], [0.0] * 9, True)
    assert response.action == "go"


def test_settings_that_cannot_work() -> None:
    with pytest.raises(ValueError, match="max_prompt_tokens: expected >= 1, got 0"):
        Renderer(CharTokenizer(), SHORT, 0, END_IDS)
    with pytest.raises(ValueError, match="expected a chat template, found none"):
        Renderer(object(), SHORT, 10, END_IDS)
