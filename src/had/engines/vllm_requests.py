"""What vLLM is asked, in the words that its Python and its HTTP interface share, and how scores are read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from had.engines.base import SamplingParams
from had.records import TopKScores

# One token more than the longest prompt with its reply: vLLM scores a text only together with a new token.
NUM_SPARE_TOKENS = 1
# Lets vLLM plan for a token behind the model's last position; it is sampled and never read.
SPARE_TOKENS_VARIABLE = ("VLLM_ALLOW_LONG_MAX_MODEL_LEN", "1")


def sampling_options(params: SamplingParams, seed: int, eos_ids: Sequence[int]) -> dict[str, Any]:
    """Sample from the plain distribution; end at our ids and at no others.

    Everything that a model's own generation settings could change is stated: a served Qwen3 would otherwise
    cut its distribution to the 20 most probable tokens.
    """
    return {
        "temperature": params.temperature,
        "max_tokens": params.max_new_tokens,
        "seed": seed,
        "top_p": 1.0,
        "top_k": 0,
        "min_p": 0.0,
        "presence_penalty": 0.0,
        "frequency_penalty": 0.0,
        "repetition_penalty": 1.0,
        "ignore_eos": True,
        "stop_token_ids": list(eos_ids),
        "logprobs": 0,  # that of the sampled token
    }


def scoring_options(top_k: int) -> dict[str, Any]:
    """Log-probabilities of every token of a text and of the `top_k` most probable ones beside it."""
    return {"temperature": 0.0, "max_tokens": NUM_SPARE_TOKENS, "prompt_logprobs": top_k}


def check_top_k(top_k: int, max_logprobs: int) -> None:
    """Refuse more entries than the engine was started for."""
    if not 1 <= top_k <= max_logprobs:
        raise ValueError(
            f"top_k: expected 1 to {max_logprobs} (max_logprobs of the engine), got {top_k}; start the "
            f"engine with max_logprobs={top_k}"
        )


def ranked_row(own_id: int, entries: Iterable[tuple[int, float, int]]) -> list[tuple[int, float]]:
    """One position as `top_scores` reads it.

    Args:
        own_id: the token that stands there.
        entries: (id, log-probability, rank from 1) of it and of the most probable tokens, in any order; an
            own token that is among these may be given twice.
    """
    by_id = {token: (rank, logprob) for token, logprob, rank in entries}
    ranked = sorted(by_id, key=lambda token: by_id[token][0])
    return [(own_id, by_id[own_id][1]), *((token, by_id[token][1]) for token in ranked)]


def top_scores(rows: Sequence[Sequence[tuple[int, float]]], top_k: int) -> TopKScores:
    """The most probable tokens of each row.

    Args:
        rows: of each position first (id, log-probability) of the token that stands there, then the most
            probable ones, most probable first, at least `top_k` of them.
        top_k: entries that are kept.
    """
    best = [row[1 : top_k + 1] for row in rows]
    return TopKScores(
        tuple(tuple(token for token, _ in row) for row in best),
        tuple(tuple(logprob for _, logprob in row) for row in best),
    )
