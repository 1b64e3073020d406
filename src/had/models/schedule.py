"""Learning-rate schedules."""

from __future__ import annotations

import math

from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR


def cosine_with_warmup(optimizer: Optimizer, num_updates: int, num_warmup: int = 15) -> LambdaLR:
    """Linear warm-up, then half a cosine down to 0 at `num_updates`.

    With k updates done before, the next one uses lr · (k + 1) / num_warmup while k < num_warmup, then
    lr · ½(1 + cos(π (k − num_warmup) / (num_updates − num_warmup))). So no update has a learning rate of
    exactly 0.

    Args:
        optimizer: its learning rates are the peak values.
        num_updates: optimizer steps of the whole run.
        num_warmup: warm-up steps among them; a run shorter than this never leaves the warm-up.

    Raises:
        ValueError: a number out of range.
    """
    if num_updates < 1:
        raise ValueError(
            f"num_updates: expected >= 1, got {num_updates}; set trainer.max_steps to the number of updates"
        )
    if num_warmup < 0:
        raise ValueError(f"num_warmup: expected >= 0, got {num_warmup}")

    def factor(num_done: int) -> float:
        if num_done < num_warmup:
            return (num_done + 1) / num_warmup
        progress = (num_done - num_warmup) / max(1, num_updates - num_warmup)
        return 0.5 * (1 + math.cos(math.pi * min(1.0, progress)))

    return LambdaLR(optimizer, factor)
