"""Says which setting to change when one phase takes most of the time."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping


class Bottleneck:
    """Looks at the seconds of the last rounds; speaks once per phase.

    Args:
        advice: by phase, what to change; a phase without advice is never named.
        share: of the time of the last rounds, above which a phase dominates.
        num_rounds: rounds that are looked at together.
        num_warmup: first rounds that are left out: they compile, fill caches, and wait for servers.

    Raises:
        ValueError: a number is out of range.
    """

    def __init__(
        self, advice: Mapping[str, str], share: float = 0.6, num_rounds: int = 3, num_warmup: int = 2
    ) -> None:
        if not 0 < share < 1 or num_rounds < 1 or num_warmup < 0:
            raise ValueError(
                "bottleneck: expected share between 0 and 1, num_rounds >= 1 and num_warmup >= 0, got "
                f"{share}, {num_rounds} and {num_warmup}"
            )
        self.advice, self.share, self.num_warmup = dict(advice), share, num_warmup
        self._last: deque[dict[str, float]] = deque(maxlen=num_rounds)
        self._num_seen = 0
        self._named: set[str] = set()

    def note(self, seconds: Mapping[str, float]) -> str | None:
        """Take the seconds of a round by phase.

        Returns:
            A warning, or None: still warming up, no phase dominates, or it has been named before.
        """
        self._num_seen += 1
        if self._num_seen <= self.num_warmup:
            return None
        self._last.append(dict(seconds))
        total = sum(sum(round.values()) for round in self._last)
        if len(self._last) < (self._last.maxlen or 0) or total <= 0:
            return None
        for phase, text in self.advice.items():
            spent = sum(round.get(phase, 0.0) for round in self._last)
            if spent > self.share * total and phase not in self._named:
                self._named.add(phase)
                return (
                    f"{phase}: {spent / total:.0%} of the last {len(self._last)} rounds ({spent:.1f} of "
                    f"{total:.1f} s). {text}"
                )
        return None
