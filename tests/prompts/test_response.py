"""From sampled ids to a response: which tokens are the command, whatever way the text was cut into tokens."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from test_parse import odd_replies
from transformers import PreTrainedTokenizerFast

from had.envs.household.source import HouseholdTasks
from had.pretraining.household_words import GAME_PHRASES
from had.pretraining.tokenizer import build_tokenizer, phrases
from had.prompts.parse import ParsedAction, parse_action
from had.prompts.response import read_response
from had.prompts.views import PromptFormat
from had.records import ParseFailure, Response
from tiny_world import quick_harness

NAMES = [f"{kind} {number}" for kind in ("mug", "drawer", "apple", "cabinet") for number in range(1, 12)]
COMMANDS = ("go to drawer 5", "take mug 1 from cabinet 11", "look", "sing «Änne» 黒", "say 🙂", "é")
WRAPPING = " \t*_`\"'"


@pytest.fixture(scope="module")
def tokenizer() -> PreTrainedTokenizerFast:
    goals = [task.goal for task in HouseholdTasks("small", num_train=40).tasks("train")]
    fixed = phrases(PromptFormat(), quick_harness(), GAME_PHRASES)
    return build_tokenizer(goals, NAMES, fixed, vocab_size=700)


def bytes_of_tokens(tokenizer: PreTrainedTokenizerFast) -> dict[bytes, int]:
    """The bytes of every token that stands for text (a lone byte of a character decodes to no text)."""
    letters = bytes_by_letter()
    table = {}
    for token, number in tokenizer.get_vocab().items():
        if token in tokenizer.get_added_vocab():
            table[token.encode()] = number
        else:
            table[bytes(letters[letter] for letter in token)] = number
    return table


def bytes_by_letter() -> dict[str, int]:
    """The letters that byte-level tokenizers write for bytes: printable ones as they are, others shifted."""
    plain = [*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    shifted = [byte for byte in range(256) if byte not in plain]
    return {chr(b): b for b in plain} | {chr(256 + n): b for n, b in enumerate(shifted)}


def random_split(text: str, table: dict[bytes, int], rng: random.Random) -> list[int]:
    """One of the many ways to write a text in tokens."""
    data, ids, position = text.encode(), [], 0
    while position < len(data):
        fitting = [length for length in range(1, 40) if data[position : position + length] in table]
        length = rng.choice([length for length in fitting if position + length <= len(data)])
        ids.append(table[data[position : position + length]])
        position += length
    return ids


def read(ids: Sequence[int], tokenizer: PreTrainedTokenizerFast) -> Response:
    return read_response(ids, [-1.0] * len(ids), True, tokenizer, {tokenizer.eos_token_id})


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("tail", ["", "\n", "\nThat is all."])
def test_the_span_decodes_to_the_command_for_many_encodings(tokenizer, command: str, tail: str) -> None:
    text = f"Thought: I nééd the mug 1.\nAction: {command}{tail}"
    table, rng = bytes_of_tokens(tokenizer), random.Random(command)
    encodings = {tuple(random_split(text, table, rng)) for _ in range(60)} | {tuple(tokenizer.encode(text))}
    assert len(encodings) > 50
    for ids in encodings:
        response = read((*ids, tokenizer.eos_token_id), tokenizer)
        assert response.text == text and response.failure is None and response.action == command
        start, end = response.action_span
        assert tokenizer.decode(response.action_ids).strip(WRAPPING) == command
        assert tokenizer.decode(response.reasoning_ids).rstrip(" ") == text[: text.index("Action:") + 7]
        assert response.ids[:start] + response.action_ids + response.ids[end:] == response.ids
        assert tokenizer.eos_token_id not in response.action_ids


def test_a_command_that_starts_inside_a_token_has_no_span() -> None:
    words = {1: "Thought: x\n", 2: "Action: go", 3: " to desk 1", 4: "Action:", 5: " go"}

    class Words:
        def decode(self, token_ids: Sequence[int], **kwargs: object) -> str:
            return "".join(words[token] for token in token_ids)

    glued = read_response([1, 2, 3], [0.0] * 3, True, Words(), ())
    assert (glued.failure, glued.action, glued.action_span) == (ParseFailure.UNALIGNED, None, (0, 0))
    cut = read_response([1, 4, 5, 3], [0.0] * 4, True, Words(), ())
    assert (cut.failure, cut.action, cut.action_span) == (None, "go to desk 1", (2, 4))


def test_a_token_that_ends_the_command_and_goes_on_belongs_to_it() -> None:
    words = {1: "Action:", 2: " go to", 3: " desk 1\nDone", 4: "."}

    class Words:
        def decode(self, token_ids: Sequence[int], **kwargs: object) -> str:
            return "".join(words[token] for token in token_ids)

    response = read_response([1, 2, 3, 4], [0.0] * 4, True, Words(), ())
    assert (response.action, response.action_span) == ("go to desk 1", (1, 3))


@pytest.mark.parametrize("command", ["say 黒", "say 🙂", "say 黒白x", "黒"])
def test_bytes_that_decode_one_by_one_to_replacement_characters(command: str) -> None:
    """Byte fallback writes one replacement character per byte until the character is complete."""

    class ByteFallback:
        def decode(self, token_ids: Sequence[int], **kwargs: object) -> str:
            data, text = bytes(token_ids), ""
            while data:
                try:
                    return text + data.decode()
                except UnicodeDecodeError as error:
                    broken = error.end - error.start
                    text += data[: error.start].decode() + "\ufffd" * broken
                    data = data[error.end :]
            return text

    for tail in ("", "\nand 白"):
        ids = list(f"Thought: 黒🙂\nAction: {command}{tail}".encode())
        response = read_response(ids, [0.0] * len(ids), True, ByteFallback(), ())
        assert bytes(response.action_ids).decode().strip() == response.action == command


def test_end_of_turn_ids_belong_to_no_span_and_stay_in_the_ids(tokenizer) -> None:
    end = tokenizer.eos_token_id
    ids = [*tokenizer.encode("Thought: x\nAction: look"), end]
    response = read(ids, tokenizer)
    assert response.ids == tuple(ids) and response.action_span[1] == len(ids) - 1
    assert "<|end|>" not in response.text
    only_end = read([end], tokenizer)
    assert (only_end.failure, only_end.text, only_end.ids) == (ParseFailure.EMPTY, "", (end,))
    assert read([], tokenizer).failure is ParseFailure.EMPTY


def test_special_tokens_inside_a_reply_are_text(tokenizer) -> None:
    ids = tokenizer.encode("Action: look<|user|> again")
    assert read(ids, tokenizer).action == "look<|user|> again"


def test_the_parts_of_a_response_that_has_no_command(tokenizer) -> None:
    response = read(tokenizer.encode("Thought: I give up."), tokenizer)
    assert (response.failure, response.action) == (ParseFailure.NO_ACTION, None)
    assert response.action_ids == response.reasoning_ids == ()


def check_any(response: Response) -> None:
    assert (response.action is None) == (response.failure is not None) == (response.action_span == (0, 0))
    parsed = parse_action(response.text)
    if response.action is not None:
        assert isinstance(parsed, ParsedAction) and parsed.action == response.action
        start, end = response.action_span
        assert 0 < start < end <= len(response.ids)
    elif isinstance(parsed, ParseFailure):
        assert response.failure is parsed
    else:
        assert response.failure is ParseFailure.UNALIGNED


def test_total_on_random_ids(tokenizer) -> None:
    rng, marker = random.Random(0), tokenizer.encode("\nAction:")
    num_found = 0
    for _ in range(1_500):
        ids = rng.choices(range(len(tokenizer)), k=rng.randint(0, 40))
        if rng.random() < 0.7:
            ids[rng.randint(0, len(ids)) : 0] = marker
        response = read(ids, tokenizer)
        check_any(response)
        num_found += response.action is not None
    assert num_found > 100


def test_total_on_random_bytes_and_odd_replies(tokenizer) -> None:
    table, rng = bytes_of_tokens(tokenizer), random.Random(1)
    single = [table[bytes([byte])] for byte in range(256)]
    for _ in range(300):
        noise = [single[rng.randrange(256)] for _ in range(rng.randint(0, 60))]
        check_any(read([*tokenizer.encode("Thought: x\nAction:"), *noise], tokenizer))
    for text in odd_replies(150):
        check_any(read(tokenizer.encode(text, add_special_tokens=False), tokenizer))
