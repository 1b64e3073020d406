"""Balance: how the gradients of several loss terms become one."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Protocol

from had.losses.gradients import Gradients, add_scaled, global_norm, require_finite


class Balance(Protocol):
    """Says which terms need gradients of their own, and combines these."""

    def groups(self, names: Sequence[str]) -> dict[str, dict[str, float]]:
        """Group name -> {term name: weight}; one gradient is accumulated for each group.

        Raises:
            ValueError: the terms are not the ones that the balance was made for.
        """

    def combine(self, gradients: Mapping[str, Gradients]) -> tuple[Gradients, dict[str, float]]:
        """The gradient of the step, and metrics by log name.

        Args:
            gradients: by group, the gradient over the whole step (all micro-batches, all ranks); may be
                overwritten.

        Raises:
            FloatingPointError: a gradient is not finite.
        """


class WeightedSum:
    """g = Σ_t w_t ∇L_t with fixed weights; one backward pass for all terms.

    Args:
        weights: weight of each term by name; a term that is not named has weight 1.
    """

    def __init__(self, weights: Mapping[str, float] | None = None) -> None:
        self.weights = dict(weights or {})

    def groups(self, names: Sequence[str]) -> dict[str, dict[str, float]]:
        unknown = sorted(set(self.weights) - set(names))
        if unknown:
            raise ValueError(
                f"WeightedSum: weights for unknown terms {unknown}; the terms are {sorted(names)}"
            )
        return {"all": {name: self.weights.get(name, 1.0) for name in names}}

    def combine(self, gradients: Mapping[str, Gradients]) -> tuple[Gradients, dict[str, float]]:
        return gradients["all"], {}


class GradientNormBalance:
    """g = ∇D + λ∇P with λ = stopgrad(ρ ‖∇D‖₂ / ‖∇P‖₂), and λ = 0 when ‖∇P‖ = 0 (paper Eq. 8-9).

    The norms are over all parameters and the whole step.

    Args:
        rho: ρ, the share of the main gradient's norm that the auxiliary one is scaled to; 0 switches the
            auxiliary term off.
        main: name of the term D.
        auxiliary: name of the term P.
    """

    def __init__(self, rho: float = 0.5, main: str = "response", auxiliary: str = "preference") -> None:
        if not (math.isfinite(rho) and rho >= 0):
            raise ValueError(f"rho: expected a finite number >= 0, got {rho}")
        self.rho = rho
        self.main = main
        self.auxiliary = auxiliary

    def groups(self, names: Sequence[str]) -> dict[str, dict[str, float]]:
        if sorted(names) != sorted((self.main, self.auxiliary)):
            raise ValueError(
                f"GradientNormBalance: expected the terms {self.main!r} and {self.auxiliary!r}, got "
                f"{list(names)}; name the terms so, or use WeightedSum"
            )
        return {self.main: {self.main: 1.0}, self.auxiliary: {self.auxiliary: 1.0}}

    def combine(self, gradients: Mapping[str, Gradients]) -> tuple[Gradients, dict[str, float]]:
        norms = {
            name: require_finite(global_norm(gradients[name]), f"the term {name!r}") for name in gradients
        }
        scale = 0.0
        if norms[self.auxiliary] > 0:
            scale = self.rho * norms[self.main] / norms[self.auxiliary]
        if not math.isfinite(scale):
            raise FloatingPointError(
                f"balance: λ = {self.rho} * {norms[self.main]} / {norms[self.auxiliary]} is not finite; the "
                f"gradient of {self.auxiliary!r} is too small for this precision"
            )
        combined = gradients[self.main]
        if scale > 0:  # 0 * inf entries never arise: both norms are finite
            combined = add_scaled(combined, gradients[self.auxiliary], scale)
        metrics = {f"grad_norm_{name}": norm for name, norm in norms.items()}
        return combined, {**metrics, "balance": scale}
