"""Turns sampled token ids into a `Response`: text, command, and which sampled tokens are the command."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

from had.prompts.parse import ParsedAction, parse_action
from had.records import ParseFailure, Response


class Decoder(Protocol):
    """The part of a tokenizer that is needed here."""

    def decode(self, token_ids: Sequence[int], **kwargs: object) -> str:
        """Text of the ids."""


def read_response(
    ids: Sequence[int],
    logprobs: Sequence[float],
    is_complete: bool,
    tokenizer: Decoder,
    end_ids: Collection[int],
) -> Response:
    """The response that consists of exactly these sampled ids.

    Args:
        ids: sampled token ids.
        logprobs: their log-probabilities.
        is_complete: the reply ended by itself.
        tokenizer: decodes ids; nothing is encoded.
        end_ids: end-of-turn ids, which belong to no span.
    """
    body = list(ids)
    while body and body[-1] in end_ids:
        body.pop()
    text = _decode(tokenizer, body)
    parsed = parse_action(text)
    span, failure, action = (0, 0), None, None
    if isinstance(parsed, ParseFailure):
        failure = parsed
    else:
        found = _token_span(tokenizer, body, text, parsed)
        if found is None:
            failure = ParseFailure.UNALIGNED
        else:
            span, action = found, parsed.action
    return Response(tuple(ids), tuple(logprobs), text, is_complete, action, failure, span)


def _decode(tokenizer: Decoder, ids: Sequence[int]) -> str:
    return tokenizer.decode(ids, skip_special_tokens=False, clean_up_tokenization_spaces=False)


def _first_prefix(tokenizer: Decoder, ids: Sequence[int], text: str, length: int) -> tuple[int, int]:
    """Smallest n whose first n tokens decode to at least text[:length], and how many characters these are."""
    low, high = 0, len(ids)
    while low < high:
        middle = (low + high) // 2
        if len(_decode(tokenizer, ids[:middle])) >= length:
            high = middle
        else:
            low = middle + 1
    # the first bytes of a character decode to a replacement character, which counts as one but is not yet it
    while low < len(ids) and not _reaches(_decode(tokenizer, ids[:low]), text, length):
        low += 1
    return low, len(_decode(tokenizer, ids[:low]))


def _reaches(prefix: str, text: str, length: int) -> bool:
    return len(prefix) >= length and prefix[:length] == text[:length]


def _token_span(
    tokenizer: Decoder, ids: Sequence[int], text: str, parsed: ParsedAction
) -> tuple[int, int] | None:
    """[start, end) of the action tokens, or None when the action does not begin at a token boundary.

    White space and quotes before the command belong to the span: tokenizers glue them to the command.
    """
    start, reached = _first_prefix(tokenizer, ids, text, parsed.marker_end)
    if reached > parsed.start:
        return None
    end, _ = _first_prefix(tokenizer, ids, text, parsed.end)
    return (start, end) if end > start else None
