"""Takes a server's answers apart; one of another shape counts as none, whatever its HTTP status says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from had.engines.vllm_replica import UnreachableError

_MAX_QUOTED_CHARS = 400


def field(answer: Any, name: str) -> Any:
    """The value under a key of a JSON object.

    Raises:
        UnreachableError: there is none; a proxy or a server that is going down may answer anything.
    """
    if not isinstance(answer, Mapping) or name not in answer:
        raise _malformed(f"a JSON object with {name!r}", answer)
    return answer[name]


def choice_of(answer: Any, body: Mapping[str, Any]) -> dict[str, Any]:
    """The one choice of an answer to `/v1/completions`.

    Args:
        answer: the decoded JSON.
        body: what was asked.

    Raises:
        UnreachableError: it does not hold what was asked for.
    """
    choices = field(answer, "choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], Mapping):
        raise _malformed("one choice", answer)
    choice = dict(choices[0])
    if "logprobs" in body and not isinstance(_get(choice.get("logprobs"), "token_logprobs"), list):
        raise _malformed("a choice with logprobs.token_logprobs", answer)
    if "prompt_logprobs" in body:
        rows = choice.get("prompt_logprobs")
        if not isinstance(rows, list) or len(rows) != len(body["prompt"]):
            raise _malformed(f"prompt_logprobs of {len(body['prompt'])} tokens", answer)
    return choice


def _get(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, Mapping) else None


def _malformed(expected: str, answer: Any) -> UnreachableError:
    return UnreachableError(f"malformed answer: expected {expected}, got {str(answer)[:_MAX_QUOTED_CHARS]}")
