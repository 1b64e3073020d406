"""What a step of the check found: numbers, and numbers with limits."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


class Skip(Exception):
    """This step has nothing to look at here; the message says why."""


@dataclass
class Findings:
    """Filled in by a step.

    Attributes:
        numbers: what was measured.
        checks: name, value, limit and whether it holds.
    """

    numbers: dict[str, Any] = field(default_factory=dict)
    checks: list[dict[str, Any]] = field(default_factory=list)

    def note(self, **numbers: Any) -> None:
        """Keep numbers that have no limit."""
        self.numbers |= {name: _short(value) for name, value in numbers.items()}

    def at_most(self, name: str, value: float, limit: float) -> None:
        """A number that must not be larger; one that is not a number fails."""
        self._add(name, value, f"<= {limit:g}", value <= limit)

    def at_least(self, name: str, value: float, limit: float) -> None:
        """A number that must not be smaller."""
        self._add(name, value, f">= {limit:g}", value >= limit)

    def holds(self, name: str, is_true: bool) -> None:
        """Something that is so or not."""
        self._add(name, bool(is_true), "true", bool(is_true))

    def _add(self, name: str, value: Any, limit: str, is_ok: bool) -> None:
        self.checks.append({"name": name, "value": _short(value), "limit": limit, "ok": bool(is_ok)})

    @property
    def is_passed(self) -> bool:
        """Something was checked, and all of it holds."""
        return bool(self.checks) and all(check["ok"] for check in self.checks)

    def text(self) -> str:
        """One line per number."""
        lines = [f"{name} = {value}" for name, value in self.numbers.items()]
        lines += [
            f"{'ok ' if c['ok'] else 'BAD'} {c['name']} = {c['value']} (expected {c['limit']})"
            for c in self.checks
        ]
        return "\n".join(f"    {line}" for line in lines)


def _short(value: Any) -> Any:
    return float(f"{value:.4g}") if isinstance(value, float) else value
