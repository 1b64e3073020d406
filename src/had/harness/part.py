"""A part of the harness: an object that looks at the facts of a turn and says at most a few sentences."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import ClassVar, Protocol

from had.records import HarnessFacts, HarnessReport

NUM_PARAPHRASES = 3
STATE_TRACKING = "state_tracking"
BEHAVIOR_MONITORING = "behavior_monitoring"


class Part(Protocol):
    """One part. Implementations are frozen dataclasses of plain values: equal parts say equal things."""

    def sentences(self, facts: HarnessFacts, draw: Draw) -> list[tuple[str, str]]:
        """(category, sentence) pairs to say now, in order; an empty list keeps silent."""

    def warn(self, facts: HarnessFacts, report: HarnessReport) -> HarnessReport:
        """`report` with the warnings of this part added; parts that never warn return it unchanged."""


class Draw:
    """Chooses paraphrases reproducibly: the same (seed, turn, sentence name) always gives the same choice."""

    def __init__(self, seed: int, turn: int) -> None:
        self._key = f"{seed}/{turn}/"

    def choose(self, name: str, wordings: Sequence[str]) -> str:
        """One of `wordings` for the sentence called `name`."""
        return wordings[zlib.crc32((self._key + name).encode()) % len(wordings)]


def check_wordings(name: str, wordings: Sequence[str], fields: set[str]) -> tuple[str, ...]:
    """Validate paraphrases when a part is built.

    Args:
        name: the part and the sentence, for the message.
        wordings: the templates, with `{field}` placeholders.
        fields: the placeholders that a template may use.

    Returns:
        The wordings as a tuple.

    Raises:
        ValueError: no wording at all, or one that does not format with `fields`.
    """
    if isinstance(wordings, str):
        raise ValueError(f"{name}: expected a list of wordings, got one text, {wordings!r}; put it in a list")
    if not wordings:
        raise ValueError(f"{name}: expected at least one wording, got none")
    for wording in wordings:
        try:
            wording.format(**dict.fromkeys(fields, ""))
        except (KeyError, IndexError, ValueError, AttributeError) as error:
            raise ValueError(
                f"{name}: the wording {wording!r} does not format; it may use {sorted(fields)} ({error!r})"
            ) from error
    return tuple(wordings)


def join(items: Sequence[str], empty: str = "nothing") -> str:
    """`a, b, c`, or `empty` for no items."""
    return ", ".join(items) if items else empty


class Silent:
    """Base of parts that never warn."""

    category: ClassVar[str] = STATE_TRACKING

    def warn(self, facts: HarnessFacts, report: HarnessReport) -> HarnessReport:
        """Nothing to add."""
        return report
