"""A small tokenizer for text games: names and fixed phrases are single tokens, bytes cover all else."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from had.harness.compose import Harness
from had.prompts.views import BLOCKED_OBSERVATION, NO_COMMAND_OBSERVATION, PromptFormat

PAD, END = "<|pad|>", "<|end|>"
ROLES = ("<|system|>", "<|user|>", "<|assistant|>")
CHAT_TEMPLATE = (
    "{% for message in messages %}<|{{ message['role'] }}|>{{ message['content'] }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
_WORDS = r" ?[A-Za-z]+| ?[0-9]|\s+|[^\sA-Za-z0-9]"


def template_phrases(templates: Iterable[str]) -> list[str]:
    """The fixed text between the placeholders of templates; a trailing space belongs to what follows."""
    pieces = [piece.rstrip(" ") for template in templates for piece in re.split(r"\{\w+\}", template)]
    return [piece for piece in pieces if len(piece) > 1]


def phrases(prompt: PromptFormat, harness: Harness, game_phrases: Sequence[str] = ()) -> list[str]:
    """Every fixed phrase of the prompts, the harness and the games (`game_phrases`)."""
    wordings = [
        wording
        for part in harness.parts.values()
        for value in vars(part).values()
        if isinstance(value, tuple)
        for wording in value
    ]
    fixed = [prompt.system, "\n\n" + prompt.task_line, "\n" + prompt.task_line, "\n" + prompt.commands_header]
    templates = [*fixed, *wordings, NO_COMMAND_OBSERVATION, BLOCKED_OBSERVATION]
    return list(dict.fromkeys([*template_phrases(templates), *game_phrases]))


def build_tokenizer(
    texts: Sequence[str], names: Sequence[str], fixed: Sequence[str], vocab_size: int
) -> PreTrainedTokenizerFast:
    """Train the tokenizer.

    Args:
        texts: sample prompts and replies, for the words.
        names: `shelf 1`…: each becomes one token, its leading space included. Objects stay two tokens
            (` mug`, ` 1`): the first is then the word of the task, and the second can be copied from where
            the object stands.
        fixed: phrases that become one token each.
        vocab_size: size of the whole vocabulary.

    Raises:
        ValueError: names, phrases and bytes alone exceed `vocab_size`.
    """
    whole = dict.fromkeys([*fixed, *(f" {name}" for name in names)])
    added = [AddedToken(text, normalized=False) for text in whole]
    num_words = vocab_size - len(added)
    if num_words < 256 + 2 + len(ROLES):
        raise ValueError(
            f"vocab_size: {len(added)} names and phrases, 256 bytes and 5 special tokens need at least "
            f"{len(added) + 261}, got {vocab_size}"
        )
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(_WORDS), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=num_words,
        special_tokens=[PAD, END, *ROLES],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.add_tokens(added)
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token=PAD, eos_token=END, clean_up_tokenization_spaces=False
    )
    fast.chat_template = CHAT_TEMPLATE
    return fast
