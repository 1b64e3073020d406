"""The harness: an ordered set of parts. A value: equal harnesses say equal things, and it is written as a small YAML."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any

import yaml

from had.harness.conditions import FULL, Condition
from had.harness.part import Draw, Part
from had.records import HarnessFacts, HarnessReport

TARGET = "_target_"  # the same key that Hydra uses, so that a saved harness can be pasted into configs/harness


@dataclass(frozen=True)
class Harness:
    """What is reported to the agent. It only adds text; it never chooses or blocks an action.

    Attributes:
        parts: the parts by name, in the order in which they speak.
        separator: stands between two sentences.
    """

    parts: Mapping[str, Part] = field(default_factory=dict)
    separator: str = " "

    def __post_init__(self) -> None:
        for name, part in self.parts.items():
            if not (hasattr(part, "sentences") and hasattr(part, "warn")):
                raise TypeError(
                    f"harness.parts.{name}: expected an object with sentences() and warn(), got {part!r}; "
                    "give it a _target_ of a part (see configs/harness)"
                )

    def text(self, facts: HarnessFacts, seed: int, condition: Condition = FULL) -> str:
        """What the agent reads at this turn.

        Args:
            facts: the tracker's facts.
            seed: the episode's seed; with the turn it decides the paraphrases.
            condition: which categories are shown.
        """
        draw = Draw(seed, facts.turn)
        said = [pair for part in self.parts.values() for pair in part.sentences(facts, draw)]
        return self.separator.join(sentence for category, sentence in said if condition.shows(category))

    def report(self, facts: HarnessFacts) -> HarnessReport:
        """The warnings in force at this turn under the full harness."""
        report = HarnessReport()
        for part in self.parts.values():
            report = part.warn(facts, report)
        return report

    def to_yaml(self) -> str:
        """A small YAML text that `from_yaml` turns back into an equal harness."""
        parts = {name: _as_plain(part) for name, part in self.parts.items()}
        return yaml.safe_dump({"separator": self.separator, "parts": parts}, sort_keys=False, allow_unicode=True)

    @classmethod
    def from_yaml(cls, text: str) -> Harness:
        """Read what `to_yaml` wrote.

        Raises:
            ValueError: not a mapping with `parts`, or a part that does not exist or does not take its keys.
        """
        plain = yaml.safe_load(text)
        if not isinstance(plain, dict) or not isinstance(plain.get("parts"), dict):
            raise ValueError(f"harness YAML: expected a mapping with the key 'parts', got {type(plain).__name__}")
        parts = {name: _from_plain(name, value) for name, value in plain["parts"].items()}
        return cls(parts=parts, separator=plain.get("separator", " "))


def _as_plain(part: Part) -> dict[str, Any]:
    assert is_dataclass(part), f"a part is a frozen dataclass, got {part!r}"
    plain: dict[str, Any] = {TARGET: f"{type(part).__module__}.{type(part).__qualname__}"}
    for item in fields(part):
        value = getattr(part, item.name)
        plain[item.name] = list(value) if isinstance(value, tuple) else value
    return plain


def _from_plain(name: str, plain: dict[str, Any]) -> Part:
    values = dict(plain)
    target = str(values.pop(TARGET, ""))
    module, _, cls = target.rpartition(".")
    try:
        part = getattr(importlib.import_module(module), cls)(**values)
    except (ImportError, AttributeError, TypeError, ValueError) as error:
        raise ValueError(f"harness YAML, part {name!r}: cannot build {target!r} with {values} ({error})") from error
    return part
