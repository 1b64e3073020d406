"""`DistillationModule`: one optimizer step over the micro-batches of a step, for any terms and any balance.

Dimension legend: B rows, T tokens, N scored tokens, V vocabulary.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from lightning import LightningModule
from torch import Tensor, nn
from torch.distributed.tensor import DTensor
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from had.batch import TokenBatch
from had.faults.out_of_memory import DoesNotFitError, halve_what_does_not_fit, is_out_of_memory, run_once
from had.faults.skipped_updates import NotFiniteError, Part, SkippedUpdates, finite_only
from had.losses.balance import Balance
from had.losses.gradients import (
    Gradients,
    average,
    global_norm,
    gradients_in,
    require_finite,
    require_finite_losses,
)
from had.losses.term import Term
from had.models.forward import scored_logits
from had.models.sharding import Placement
from had.runtime.ranks import gather, num_ranks, sum_by_name

# Denominators and sizes that are not logged as `num_<count>`; `tokens` itself is.
_UNLOGGED_COUNTS = ("tokens_", "spans_", "weighted_")


@dataclass(frozen=True)
class _Pass:
    """What forward and backward over the micro-batches of this rank gave."""

    gradients: dict[str, Gradients]
    parts: list[Part]

    def sums(self) -> dict[str, float]:
        """By term, over all micro-batches."""
        return sum_by_name([part.sums for part in self.parts])


class DistillationModule(LightningModule):
    """A student, the loss terms it is trained with, and how their gradients become one step.

    The batch given to `training_step` is one whole optimizer step: the micro-batches that
    `had.data.packing.pack` made of its records (`DataLoader(batch_size=None)`). The step divides by the
    counts of all ranks, so its result does not depend on how the records were split into micro-batches or
    over ranks.

    Attributes:
        model: the student.
        last_step_metrics: the numbers of the last step by column name (update, lr, loss_<term>,
            grad_norm_<…>, balance, grad_norm_total before clipping, num_<count>, tokens, skipped_updates: 1
            if this one was skipped, split_batches: micro-batches that were halved because they did not fit
            into memory), the same on every rank; logged as `train/<name>`. Those of a skipped update that
            are not finite are left out.
    """

    def __init__(
        self,
        model: nn.Module,
        terms: Sequence[Term],
        balance: Balance,
        optimizer: Callable[[Iterable[nn.Parameter]], Optimizer],
        scheduler: Callable[[Optimizer], LRScheduler],
        max_grad_norm: float = 1.0,
        placement: Placement | None = None,
        faults: SkippedUpdates | None = None,
    ) -> None:
        """Set up the step.

        Args:
            model: the student; its parameters are trained in full.
            terms: the loss terms, with different names.
            balance: combines the gradients of the terms.
            optimizer: makes the optimizer from the parameters.
            scheduler: makes the learning-rate schedule from the optimizer; stepped once per optimizer step.
            max_grad_norm: the combined gradient is scaled down to this global norm.
            placement: shards the model when the strategy has a device mesh; None: as `Placement()`.
            faults: what happens to an update that is not finite; None: as `SkippedUpdates()`.

        Raises:
            ValueError: terms with equal names, terms that the balance does not know, or a norm that is not
                positive.
        """
        super().__init__()
        names = [term.name for term in terms]
        if not names or len(set(names)) != len(names):
            raise ValueError(f"terms: expected at least one term and different names, got {names}")
        if max_grad_norm <= 0:
            raise ValueError(f"max_grad_norm: expected > 0, got {max_grad_norm}; use inf for no clipping")
        self.automatic_optimization = False
        self.model = model
        self.terms = {term.name: term for term in terms}
        self.balance = balance
        self.groups = balance.groups(names)
        self.make_optimizer = optimizer
        self.make_scheduler = scheduler
        self.max_grad_norm = max_grad_norm
        self.placement = placement or Placement()
        self.faults = faults or SkippedUpdates()
        self.last_step_metrics: dict[str, float] = {}
        self._scored_logits: Callable[..., Tensor] | None = None  # of a sharded model

    def configure_model(self) -> None:
        """Shard the model, under a strategy that shards; Lightning calls this more than once."""
        if self.device_mesh is not None and self._scored_logits is None:
            mesh = self.device_mesh["data_parallel"]
            self._scored_logits = self.placement.shard(self.model, mesh)  # type: ignore[arg-type]

    def configure_optimizers(self) -> Any:
        optimizer = self.make_optimizer(self._trainable())
        return {
            "optimizer": optimizer,
            "lr_scheduler": {"scheduler": self.make_scheduler(optimizer), "interval": "step"},
        }

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        checkpoint["faults"] = self.faults.state_dict()

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        self.faults.load_state_dict(checkpoint["faults"])

    def training_step(self, batch: list[TokenBatch], batch_idx: int = 0) -> None:
        """Take one optimizer step, or skip it when a loss or a gradient is not finite.

        Raises:
            FloatingPointError: too many updates in a row were skipped.
            MemoryError: a micro-batch does not fit into memory and cannot be split.
        """
        try:
            metrics = self.compute_gradient(batch)
            metrics = {**self._update(), **metrics, "skipped_updates": 0}
            self.faults.taken()
        except NotFiniteError as error:
            metrics = {**self._update(is_skipped=True), **finite_only(error.metrics), "skipped_updates": 1}
            self.faults.skipped(int(metrics["update"]), error, self.model)
        self.last_step_metrics = metrics
        self.log_dict({f"train/{name}": value for name, value in metrics.items()})

    def compute_gradient(self, batch: Sequence[TokenBatch]) -> dict[str, float]:
        """Leave the clipped gradient of the whole step in `.grad` and return the metrics of the step.

        Raises:
            NotFiniteError: a loss or a gradient is not finite; every rank raises it. `.grad` is None.
            MemoryError: a micro-batch does not fit into memory and cannot be split.
        """
        steps = gather((len(batch), dict(batch[0].counts)))
        counts = sum_by_name([counts for _, counts in steps])
        done = self._accumulate(batch, counts, num_forwards=max(length for length, _ in steps))
        sums = sum_by_name(gather(done.sums()))
        num_split = sum(gather(len(done.parts) - len(batch)))
        means = {name: self._mean(term, sums[name], counts) for name, term in self.terms.items()}
        nums = {
            f"num_{k}": v for k, v in counts.items() if k != "tokens" and not k.startswith(_UNLOGGED_COUNTS)
        }
        losses = {f"loss_{name}": value for name, value in means.items()}
        sizes = {**nums, "tokens": counts["tokens"], "split_batches": num_split}
        try:
            require_finite_losses(means)
            gradient, metrics = self.balance.combine(done.gradients)
            norm = self._clip(gradient)
        except FloatingPointError as error:
            raise NotFiniteError(str(error), {**losses, **sizes}, done.parts) from None
        for parameter, value in zip(self._trainable(), gradient, strict=True):
            parameter.grad = value
        return {**losses, **metrics, "grad_norm_total": norm, **sizes}

    def _trainable(self) -> list[nn.Parameter]:
        return [parameter for parameter in self.model.parameters() if parameter.requires_grad]

    def _update(self, is_skipped: bool = False) -> dict[str, float]:
        """Step the optimizer and its schedule; the update's number (from 1) and its learning rate."""
        optimizer, scheduler = self.optimizers(), self.lr_schedulers()
        rate = optimizer.param_groups[0]["lr"]  # type: ignore[union-attr]
        # A skipped one too, as Lightning counts these calls: without a gradient it touches neither weight nor
        # state.
        optimizer.step()  # type: ignore[union-attr]
        optimizer.zero_grad()  # type: ignore[union-attr]
        if not is_skipped:
            scheduler.step()  # type: ignore[union-attr]
        return {"update": float(self.trainer.global_step), "lr": rate}

    def _accumulate(
        self, batches: Sequence[TokenBatch], counts: Mapping[str, float], num_forwards: int
    ) -> _Pass:
        """The gradient of each group over all micro-batches and ranks.

        Raises:
            MemoryError: a micro-batch does not fit into memory, on any of the ranks. With sharded parameters
                only the rank without memory knows.
        """
        work = functools.partial(self._pass, counts=counts, num_forwards=num_forwards)
        if _is_sharded(self._trainable()):  # the backward pass averages over the ranks
            return run_once(batches, work)
        try:
            done, problem = halve_what_does_not_fit(batches, work), None
        except MemoryError as error:
            done, problem = _Pass({}, []), str(error)
        if problems := [f"rank {i}: {text}" for i, text in enumerate(gather(problem)) if text]:
            raise MemoryError("; ".join(problems))
        parameters = self._trainable()
        averaged = {name: average(value, parameters, num_ranks()) for name, value in done.gradients.items()}
        return _Pass(averaged, done.parts)

    def _pass(self, batches: Sequence[TokenBatch], counts: Mapping[str, float], num_forwards: int) -> _Pass:
        """Forward and backward of this rank's micro-batches, into new buffers.

        Sharded parameters are gathered by collectives inside forward and backward, so every rank must run the
        same number of both: a rank with fewer micro-batches repeats its last one with weight 0.

        Raises:
            DoesNotFitError: out of memory; the buffers are dropped.
        """
        # Listed once: between forward and backward a sharded model shows its gathered parameters instead.
        parameters = self._trainable()
        is_sharded = _is_sharded(parameters)
        gradients: dict[str, Gradients] = {group: [None] * len(parameters) for group in self.groups}
        sums: list[dict[str, Tensor]] = []
        for index in range(num_forwards if is_sharded else len(batches)):
            batch = batches[min(index, len(batches) - 1)]
            active = [group for group in self.groups if is_sharded or self._has_units(group, batch)]
            try:
                values = self._values(batch, is_first_use=index < len(batches))
                for group in active:
                    loss = self._group_loss(group, values, counts)
                    with gradients_in(parameters, gradients[group]):
                        # Not manual_backward: under DDP it would average in each pass, not once per group.
                        loss.backward(retain_graph=group != active[-1])
            except (RuntimeError, MemoryError) as error:
                if is_out_of_memory(error):
                    raise DoesNotFitError(index, str(error).partition("\n")[0]) from None
                raise
            sums.append({name: value.detach() for name, value in values.items()})
        floats = [{name: float(value) for name, value in found.items()} for found in sums]
        # without the repeated ones
        return _Pass(gradients, [Part(*pair) for pair in zip(batches, floats, strict=False)])

    def _values(self, batch: TokenBatch, is_first_use: bool) -> dict[str, Tensor]:
        """The sum of each term over one micro-batch, with its gradient path."""
        logits = self._logits(batch)
        return {name: term(batch.spans, logits) * is_first_use for name, term in self.terms.items()}

    def _logits(self, batch: TokenBatch) -> dict[str, Tensor]:
        """By role, [N, V] logits at the scored tokens; the head runs on scored positions only."""
        if not batch.spans:  # nothing is scored: one position keeps the ranks in step
            origin = torch.zeros(1, dtype=torch.long, device=batch.tokens_BT.device)
            rows_N, sources_N, sizes = origin, origin, {"": 1}
        else:
            rows_N = torch.cat([spans.rows_N for spans in batch.spans.values()])
            sources_N = torch.cat([spans.sources_N for spans in batch.spans.values()])
            sizes = {role: spans.num_tokens for role, spans in batch.spans.items()}
        forward = self._scored_logits or functools.partial(scored_logits, self.model)  # type: ignore[arg-type]
        inputs = (batch.tokens_BT, batch.positions_BT, batch.attention_mask())
        logits_NV = forward(*inputs, rows_N, sources_N)
        return dict(zip(sizes, logits_NV.split(list(sizes.values())), strict=True))

    def _has_units(self, group: str, batch: TokenBatch) -> bool:
        return any(self.terms[name].has_units(batch.spans) for name in self.groups[group])

    def _group_loss(self, group: str, values: Mapping[str, Tensor], counts: Mapping[str, float]) -> Tensor:
        """Σ_t w_t · sum_t / count_t of one micro-batch, times the ranks because gradients are averaged."""
        parts = []
        for name, weight in self.groups[group].items():
            count = counts.get(self.terms[name].count_name, 0.0)
            parts.append(values[name] * (weight * num_ranks() / count if count else 0.0))
        return torch.stack(parts).sum()

    def _mean(self, term: Term, forwarded_sum: float, counts: Mapping[str, float]) -> float:
        """The reported value of a term; 0 when the step has no unit of it."""
        count = counts.get(term.count_name, 0.0)
        return (forwarded_sum + term.skipped_sum(counts)) / count if count else 0.0

    def _clip(self, gradient: Gradients) -> float:
        """Scale the gradient down to the maximum global norm, in place; the norm before."""
        norm = require_finite(global_norm(gradient), "the whole step")
        if norm > self.max_grad_norm:
            for value in gradient:
                if value is not None:
                    value.mul_(self.max_grad_norm / norm)
        return norm


def _is_sharded(parameters: Sequence[nn.Parameter]) -> bool:
    return any(isinstance(parameter, DTensor) for parameter in parameters)
