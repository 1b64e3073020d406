"""Hands the student's weights to the engine that plays, after every round, and verifies that it has them.

Dimension legend: B rows (one), T tokens, N scored tokens, V vocabulary.
"""

from __future__ import annotations

import functools
import logging
import math
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from lightning import Callback, LightningModule, Trainer
from torch import Tensor

from had.engines.base import Engine, SharedEngine
from had.models.forward import scored_logits
from had.models.sharding import full_state_dict, reshard
from had.runtime.ranks import gather, is_first, num_ranks, of_first
from had.runtime.stopwatch import Stopwatch

# Mean change of the trainer's log-probabilities, in nats, of which an engine must show something.
_NOTICEABLE = 1e-3
_log = logging.getLogger(__name__)


class WeightSyncError(RuntimeError):
    """The engine does not play with the trained weights."""


@dataclass(frozen=True)
class Probe:
    """A text on which trainer and engine must agree.

    Attributes:
        prompt_ids: what stands before.
        response_ids: the tokens whose log-probabilities are compared.
    """

    prompt_ids: Sequence[int]
    response_ids: Sequence[int]

    def __post_init__(self) -> None:
        if not self.prompt_ids or not self.response_ids:
            raise ValueError(
                f"probe: expected a prompt and a response, got {len(self.prompt_ids)} and "
                f"{len(self.response_ids)} tokens"
            )


class WeightSync(Callback):
    """Loads the trained weights into the student's engine when the fit starts and when a round ends.

    After each load the engine's log-probabilities of a probe are compared with the trainer's. An engine can
    report success and play with other weights, in full or in part: old ones, a stale output layer.

    Every rank has an engine; the weights of a sharded student are gathered first. Where all ranks share one,
    the first rank loads it.

    Must stand before the callbacks that play (evaluation).

    Args:
        engine: the engine that plays for the student.
        probe: the text to compare on; a few dozen tokens and more.
        tolerance: mean absolute difference of the log-probabilities that is taken for rounding, in nats.
        timeout_s: seconds that loading and scoring the probe may take.
        watch: measures the time of the syncs.
    """

    def __init__(
        self,
        engine: Engine,
        probe: Probe,
        tolerance: float = 1e-3,
        timeout_s: float = 600.0,
        watch: Stopwatch | None = None,
    ) -> None:
        if tolerance <= 0 or timeout_s <= 0:
            raise ValueError(
                f"weight_sync: expected tolerance > 0 and timeout_s > 0, got {tolerance} and {timeout_s}"
            )
        self.engine, self.probe = engine, probe
        self.tolerance, self.timeout_s = tolerance, timeout_s
        self.watch = watch or Stopwatch()
        self._before: tuple[tuple[float, ...], tuple[float, ...]] | None = None

    def on_fit_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._sync(pl_module, self._datamodule(trainer).policy_version)

    def on_load_checkpoint(
        self, trainer: Trainer, pl_module: LightningModule, checkpoint: dict[str, Any]
    ) -> None:
        # a strategy that shards first loads the weights of the checkpoint after `on_fit_start`
        if trainer.strategy.restore_checkpoint_after_setup:
            self._sync(pl_module, self._datamodule(trainer).policy_version)

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._sync(pl_module, self._datamodule(trainer).finish_epoch())

    def _sync(self, pl_module: LightningModule, version: int) -> None:
        with self.watch.running():
            self._load_and_verify(pl_module.model, version)

    def _load_and_verify(self, model: Any, version: int) -> None:
        weights = full_state_dict(model)
        trained = probe_logprobs(model, self.probe)
        self._raise_first(self._load(version, weights))
        if isinstance(self.engine, SharedEngine):
            self.engine.follow(of_first(self.engine.loaded))
        self._raise_first(self._verify(version, trained))

    def _load(self, version: int, weights: Mapping[str, Tensor]) -> str | None:
        """Load the weights; what went wrong."""
        if isinstance(self.engine, SharedEngine) and not is_first():
            return None
        load = functools.partial(self.engine.load_weights, version, weights)
        return self._attempt(f"load_weights({version})", load)[1]

    def _verify(self, version: int, trained: tuple[float, ...]) -> str | None:
        """Compare; what is wrong."""
        ask = functools.partial(self.engine.logprobs, [self.probe.prompt_ids], [self.probe.response_ids])
        answers, problem = self._attempt(f"scoring the probe with version {version}", ask)
        if answers is None:
            return problem
        played = tuple(answers[0])
        before, self._before = self._before, (trained, played)
        difference = mean_difference(trained, played)
        _log.info("weight sync of version %d: mean difference of the probe %.2g nats", version, difference)
        if not difference <= self.tolerance:
            return self._mismatch(version, trained, played, difference)
        if before is not None and before[1] == played:
            moved = mean_difference(before[0], trained)
            if moved > _NOTICEABLE:
                return (
                    f"weight sync of version {version}: training changed the probe's log-probabilities by "
                    f"{moved:.3g} nats on average, the engine's did not change at all: it still plays with "
                    "the weights of the version before, and nothing was loaded"
                )
        return None

    def _mismatch(
        self, version: int, trained: Sequence[float], played: Sequence[float], difference: float
    ) -> str:
        gaps = [abs(a - b) for a, b in zip(trained, played, strict=True)]
        worst = max(range(len(gaps)), key=lambda index: math.inf if math.isnan(gaps[index]) else gaps[index])
        return (
            f"weight sync of version {version}: expected the probe's {len(gaps)} tokens to be as probable in "
            f"the engine as in the trainer, got mean log-probabilities {sum(trained) / len(gaps):.6f} "
            f"(trainer) and {sum(played) / len(gaps):.6f} (engine), {difference:.3g} nats apart on average "
            f"where {self.tolerance:g} are allowed (weight_sync.tolerance), at most at token {worst}: "
            f"{trained[worst]:.6f} and {played[worst]:.6f}. The engine does not play with the trained "
            "weights: look at its load_weights, or at the server's log; only if it computes in a coarser "
            "type than the trainer raise the tolerance (about 0.05 for bfloat16)"
        )

    def _attempt(self, what: str, action: Callable[[], Any]) -> tuple[Any, str | None]:
        """The result of an action, or what is wrong: of several ranks none may leave the others waiting."""
        try:
            return within(self.timeout_s, what, action), None
        except (RuntimeError, ValueError, OSError) as error:
            if num_ranks() == 1:
                raise
            return None, f"{type(error).__name__}: {error}"

    @staticmethod
    def _raise_first(problem: str | None) -> None:
        """Stop all ranks when one has a problem; must be called on every rank."""
        found = [each for each in gather(problem) if each is not None]
        if found:
            raise WeightSyncError(found[0])

    @staticmethod
    def _datamodule(trainer: Trainer) -> Any:
        return trainer.datamodule  # type: ignore[attr-defined]


def mean_difference(a: Sequence[float], b: Sequence[float]) -> float:
    """Mean absolute difference, in nats; not a number when one of them is not."""
    return sum(abs(x - y) for x, y in zip(a, b, strict=True)) / len(a)


@torch.no_grad()
def probe_logprobs(model: Any, probe: Probe) -> tuple[float, ...]:
    """The trainer's log-probability of each token of the probe's response; on every rank of a sharded model.

    Args:
        model: the student as it is trained, sharded or not.
        probe: what is scored.
    """
    ids = [*probe.prompt_ids, *probe.response_ids]
    device, num = next(model.parameters()).device, len(ids)
    tokens_BT = torch.tensor([ids], device=device)
    causal_B1TT = torch.ones(1, 1, num, num, dtype=torch.bool, device=device).tril()
    sources_N = torch.arange(len(probe.prompt_ids) - 1, num - 1, device=device)
    # a sharded model may be called through its own method only (had.models.sharding)
    forward = getattr(model, "scored_logits", None) or functools.partial(scored_logits, model)
    was_training = model.training
    model.eval()
    logits_NV = forward(
        tokens_BT, torch.arange(num, device=device)[None], causal_B1TT, torch.zeros_like(sources_N), sources_N
    )
    model.train(was_training)
    reshard(model)
    targets_N1 = tokens_BT[0, sources_N + 1][:, None]
    return tuple(torch.log_softmax(logits_NV, dim=-1).gather(1, targets_N1).squeeze(1).tolist())


def within(timeout_s: float, what: str, action: Callable[[], Any]) -> Any:
    """The result of an action that may hang, e.g. in a collective with a process that has died.

    Args:
        timeout_s: seconds it may take. Afterwards it goes on in the background; the program can end.
        what: its name in the message.
        action: what is done, in a thread of its own.

    Raises:
        WeightSyncError: it took too long.
    """
    results: list[Any] = []
    errors: list[Exception] = []
    device = torch.cuda.current_device() if torch.cuda.is_initialized() else None

    def run() -> None:
        try:
            if device is not None:
                torch.cuda.set_device(device)  # a new thread would begin on the first GPU
            results.append(action())
        except Exception as error:  # raised below, where it belongs
            errors.append(error)

    thread = threading.Thread(target=run, name=what, daemon=True)
    thread.start()
    thread.join(timeout_s)
    if errors:
        raise errors[0]
    if not results:
        raise WeightSyncError(
            f"{what}: expected it within {timeout_s:g} s (weight_sync.timeout_s), it still goes on. A server "
            "or a process of the engine hangs: look into its log, start it again and go on from the last "
            "round with resume=CHECKPOINT; a large model on a slow disk or network needs a longer timeout"
        )
    return results[0]
