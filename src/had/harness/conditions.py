"""Evaluation conditions: which categories of text are shown, and whether rejected commands are executed."""

from __future__ import annotations

from dataclasses import dataclass

from had.harness.part import BEHAVIOR_MONITORING, STATE_TRACKING


@dataclass(frozen=True)
class Condition:
    """One condition (spec section 4). The tracker runs under all of them, so every metric exists everywhere.

    Attributes:
        name: as it stands in tables and files.
        hidden: categories whose sentences are left out.
        is_blocking: a command that the validity check rejects is not executed; it costs a turn, and the agent
            is told.
    """

    name: str
    hidden: frozenset[str] = frozenset()
    is_blocking: bool = False

    def shows(self, category: str) -> bool:
        """True when sentences of this category are shown."""
        return category not in self.hidden


FULL = Condition("full")
CONDITIONS = {
    condition.name: condition
    for condition in (
        FULL,
        Condition("off", frozenset({STATE_TRACKING, BEHAVIOR_MONITORING})),
        Condition("no_state_tracking", frozenset({STATE_TRACKING})),
        Condition("no_behavior_monitoring", frozenset({BEHAVIOR_MONITORING})),
        Condition("hard_block", is_blocking=True),
    )
}


def get_condition(name: str) -> Condition:
    """The condition of that name.

    Raises:
        ValueError: unknown name.
    """
    if name not in CONDITIONS:
        raise ValueError(f"harness condition: expected one of {sorted(CONDITIONS)}, got {name!r}")
    return CONDITIONS[name]
