"""Messages to token ids. The one place that knows chat templates, thinking switches and the context limit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from had.prompts.response import read_response
from had.prompts.views import Message, PastTurn, PromptFormat, ShownTurn, View, drop_oldest_turn
from had.records import Response

# How templates mark thinking in a reply; a block that is opened and closed at once means that it is off.
THINKING_BLOCKS = (("<think>", "</think>"), ("<|channel>", "<channel|>"))
THINKING_SWITCH = "<|think|>"  # a system turn that begins with it asks for thinking

_PROBE_TASK, _PROBE_REPLY = "probe-of-a-task", "probe-of-a-reply"  # text that no template changes
_PROBE: list[Message] = [
    {"role": "system", "content": "Play."},
    {"role": "user", "content": _PROBE_TASK},
    {"role": "assistant", "content": _PROBE_REPLY},
]


class PromptTooLongError(ValueError):
    """Even without any history the prompt does not leave room for a reply."""


def end_of_turn_id(tokenizer: Any) -> int:
    """The token that ends a reply, as the chat template writes it behind one.

    It need not be the tokenizer's end-of-text token: Gemma's template ends a turn with `<turn|>` while its
    tokenizer names `<eos>`.

    Raises:
        ValueError: the template ends a reply with ordinary text, or the tokenizer cannot render one.
    """
    text = tokenizer.apply_chat_template(_PROBE, tokenize=False, enable_thinking=False)
    behind = text.rpartition(_PROBE_REPLY)[2]
    ids = tokenizer.encode(behind, add_special_tokens=False) if behind.strip() else [tokenizer.eos_token_id]
    if ids[0] is None or ids[0] not in tokenizer.added_tokens_decoder:
        raise ValueError(
            f"tokenizer {_name(tokenizer)}: expected its chat template to end a reply with a token of its "
            f"own, found {behind!r}; use an instruction-tuned model or set tokenizer.chat_template"
        )
    return int(ids[0])


def check_thinking_off(tokenizer: Any) -> None:
    """Look at the token ids that open a reply: thinking must be off.

    Raises:
        ValueError: they open a thinking block and leave it open, or the prompt asks for thinking.
    """
    text = tokenizer.decode(_encoded(tokenizer, _PROBE[:-1]), skip_special_tokens=False)
    opening = text.rpartition(_PROBE_TASK)[2]
    is_open = any(opening.count(first) > opening.count(last) for first, last in THINKING_BLOCKS)
    if is_open or THINKING_SWITCH in text:
        raise ValueError(
            f"tokenizer {_name(tokenizer)}: expected thinking to be off, but with enable_thinking=False its "
            f"prompts end with {opening!r}; take a model whose template can switch thinking off"
        )


def _name(tokenizer: Any) -> str:
    return getattr(tokenizer, "name_or_path", None) or type(tokenizer).__name__


def _encoded(tokenizer: Any, messages: Sequence[Message]) -> list[int]:
    """Ids of the messages with the opening of a reply; thinking is off where the template knows it."""
    ids = tokenizer.apply_chat_template(
        list(messages), tokenize=True, add_generation_prompt=True, enable_thinking=False, return_dict=False
    )
    return list(ids)


@dataclass(frozen=True)
class Renderer:
    """Turns states into prompts for one tokenizer, and sampled ids back into responses.

    Truncation rule: while the prompt is longer than `max_prompt_tokens`, the oldest turn of the history is
    dropped. The instructions, the task and the current state are never cut. Both views of a state drop the
    same turns, those for which the with-harness view has no room: nothing but the harness text may differ.

    Attributes:
        tokenizer: a Hugging Face tokenizer with a chat template.
        format: how a history becomes messages.
        max_prompt_tokens: context limit less the longest reply.
        end_ids: ids that end a reply.
    """

    tokenizer: Any
    format: PromptFormat
    max_prompt_tokens: int
    end_ids: frozenset[int]

    def __post_init__(self) -> None:
        if self.max_prompt_tokens < 1:
            raise ValueError(
                f"max_prompt_tokens: expected >= 1, got {self.max_prompt_tokens}; "
                "the context must be longer than the longest reply"
            )
        if getattr(self.tokenizer, "chat_template", None) is None:
            raise ValueError(
                f"tokenizer {_name(self.tokenizer)}: expected a chat template, "
                "found none; use an instruction-tuned model or set tokenizer.chat_template"
            )

    @property
    def pad_id(self) -> int:
        """Fills rows behind their tokens, where no token attends to it: any id of the vocabulary will do."""
        pad: int | None = self.tokenizer.pad_token_id
        return min(self.end_ids) if pad is None else pad

    def prompt(self, goal: str, past: Sequence[PastTurn], now: ShownTurn, view: View) -> tuple[int, ...]:
        """Token ids of one state in one view, ready for the reply.

        Raises:
            PromptTooLongError: the task and the current state alone are too long in the with-harness view.
        """
        longest: list[Message] | None = self.format.messages(goal, past, now, View.WITH_HARNESS)
        num_dropped = 0
        while longest is not None:
            ids = self.encode(longest)
            if len(ids) <= self.max_prompt_tokens:
                is_longest = view is View.WITH_HARNESS
                return tuple(ids) if is_longest else self._without(goal, past, now, num_dropped)
            longest = drop_oldest_turn(longest)
            num_dropped += 1
        raise PromptTooLongError(
            f"prompt: expected at most {self.max_prompt_tokens} tokens, got {len(ids)} with all history "
            "dropped; raise the context limit or lower the reply limit"
        )

    def _without(
        self, goal: str, past: Sequence[PastTurn], now: ShownTurn, num_dropped: int
    ) -> tuple[int, ...]:
        messages = self.format.messages(goal, past, now, View.WITHOUT_HARNESS)
        for _ in range(num_dropped):
            messages = drop_oldest_turn(messages) or messages
        return tuple(self.encode(messages))

    def encode(self, messages: list[Message]) -> list[int]:
        """Ids of the messages with the opening of a reply; thinking is off where the template knows it."""
        return _encoded(self.tokenizer, messages)

    def response(self, ids: Sequence[int], logprobs: Sequence[float], is_complete: bool) -> Response:
        """The response made of exactly these sampled ids."""
        return read_response(ids, logprobs, is_complete, self.tokenizer, self.end_ids)
