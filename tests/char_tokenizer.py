"""A tokenizer whose ids are characters: prompts can be read back, and every span is known."""

from __future__ import annotations

from collections.abc import Sequence

END_ID = 0
END_IDS = frozenset([END_ID])
COMMANDS_HEADER = "Admissible commands:\n"


class CharTokenizer:
    """The few methods of a Hugging Face tokenizer that the project uses."""

    chat_template = "ids are code points"
    name_or_path = "characters"

    def apply_chat_template(self, messages: list[dict[str, str]], **kwargs: object) -> list[int]:
        assert kwargs["add_generation_prompt"] and not kwargs["enable_thinking"]
        text = "".join(f"<{message['role']}>{message['content']}</>" for message in messages)
        return [ord(character) for character in f"{text}<assistant>"]

    def decode(self, token_ids: Sequence[int], **kwargs: object) -> str:
        return "".join(chr(token) for token in token_ids if token != END_ID)


def reply_ids(text: str) -> tuple[int, ...]:
    return (*(ord(character) for character in text), END_ID)


def listed_commands(prompt_ids: Sequence[int]) -> list[str]:
    """The admissible commands at the end of a prompt."""
    text = CharTokenizer().decode(prompt_ids)
    return text.rpartition(COMMANDS_HEADER)[2].partition("</>")[0].split("\n")
