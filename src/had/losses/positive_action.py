"""Positive action: raise a⁺ after the student's own reasoning, without a negative (*positive only*)."""

from __future__ import annotations

from had.losses.response_nll import ResponseNLL


class PositiveAction(ResponseNLL):
    """P = (1/n_V) Σ_accepted −log π_θ(a⁺|x̃,z_s)/|a⁺|.

    The response term on another span: the role `preferred` (action tokens only), divided by the accepted
    pairs. It keeps the name `preference`, because it takes the place of `ActionPreference` in the balance and
    in the logs.
    """

    def __init__(self, name: str = "preference") -> None:
        super().__init__(name, role="preferred", count_name="accepted")
