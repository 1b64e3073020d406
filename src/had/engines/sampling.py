"""Sampling by inverse distribution function: one uniform number per token, from the request's own seed.

Dimension legend: N requests, M new tokens, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor


def draw_uniforms(seeds: Sequence[int], num_tokens: int) -> Tensor:
    """[N, M] float64 in [0, 1): row i depends on `seeds[i]` only, and a longer row begins like a shorter."""
    rows = [np.random.Generator(np.random.PCG64(seed)).random(num_tokens) for seed in seeds]
    return torch.from_numpy(np.stack(rows))


def sample(logits_NV: Tensor, temperature: float, uniforms_N: Tensor) -> tuple[Tensor, Tensor]:
    """One token per row.

    Args:
        logits_NV: [N, V] float32.
        temperature: 0 takes the most probable token.
        uniforms_N: [N] float64 in [0, 1).

    Returns:
        [N] ids, and [N] float32 log-probabilities of these ids under the full vocabulary at temperature 1.
    """
    logprobs_NV = torch.log_softmax(logits_NV, dim=-1)
    if temperature == 0:
        ids_N = logits_NV.argmax(dim=-1)
    else:
        # float64: a float32 sum over a large vocabulary is off by more than the probability of a rare token
        cdf_NV = torch.softmax(logits_NV / temperature, dim=-1).cumsum(dim=-1, dtype=torch.float64)
        thresholds_N1 = uniforms_N[:, None] * cdf_NV[:, -1:]
        ids_N = (
            torch.searchsorted(cdf_NV, thresholds_N1, right=True).squeeze(1).clamp(max=cdf_NV.shape[1] - 1)
        )
    return ids_N, logprobs_NV.gather(1, ids_N[:, None]).squeeze(1)
