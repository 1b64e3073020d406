"""Messages to token ids. The one place that knows chat templates, thinking switches and the context limit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from had.prompts.response import read_response
from had.prompts.views import Message, PastTurn, PromptFormat, ShownTurn, View, drop_oldest_turn
from had.records import Response


class PromptTooLongError(ValueError):
    """Even without any history the prompt does not leave room for a reply."""


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
                f"tokenizer {getattr(self.tokenizer, 'name_or_path', '?')}: expected a chat template, "
                "found none; use an instruction-tuned model or set tokenizer.chat_template"
            )

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
        encoded = self.tokenizer.apply_chat_template(
            messages, tokenize=True, add_generation_prompt=True, enable_thinking=False, return_dict=False
        )
        return list(encoded)

    def response(self, ids: Sequence[int], logprobs: Sequence[float], is_complete: bool) -> Response:
        """The response made of exactly these sampled ids."""
        return read_response(ids, logprobs, is_complete, self.tokenizer, self.end_ids)
