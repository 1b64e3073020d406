"""The harness: an ordered set of parts. A value: equal harnesses say equal things, in text and in YAML."""

from __future__ import annotations

import importlib
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any, cast

import yaml

from had.harness.conditions import FULL, Condition
from had.harness.part import Draw, Part
from had.records import HarnessFacts, HarnessReport

TARGET = "_target_"  # Hydra's key, so that a saved harness can be pasted into configs/harness


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
        # plain dicts are equal in any order, but parts in another order say another text
        object.__setattr__(self, "parts", OrderedDict(self.parts))

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
        plain = {"separator": self.separator, "parts": parts}
        return yaml.safe_dump(plain, sort_keys=False, allow_unicode=True)

    @classmethod
    def from_yaml(cls, text: str) -> Harness:
        """Read what `to_yaml` wrote.

        Raises:
            ValueError: not a mapping of `parts` and `separator`, or a part that does not exist or does not
                take its keys.
        """
        try:
            plain = yaml.safe_load(text)
        except yaml.YAMLError as error:
            raise ValueError(f"harness YAML: expected YAML as to_yaml() writes it, got {error}") from error
        if not isinstance(plain, dict) or not isinstance(plain.get("parts"), dict):
            raise ValueError(
                f"harness YAML: expected a mapping with 'parts' (the parts by name), got {plain!r:.200}"
            )
        if unknown := set(plain) - {"parts", "separator"}:
            raise ValueError(
                f"harness YAML: expected the keys 'parts' and 'separator', got also {unknown}"
            )
        parts = {name: _from_plain(name, value) for name, value in plain["parts"].items()}
        return cls(parts=parts, separator=plain.get("separator", " "))


def _as_plain(part: Part) -> dict[str, Any]:
    assert is_dataclass(part), f"a part is a frozen dataclass, got {part!r}"
    plain: dict[str, Any] = {TARGET: f"{type(part).__module__}.{type(part).__qualname__}"}
    for item in fields(part):
        value = getattr(part, item.name)
        plain[item.name] = list(value) if isinstance(value, tuple) else value
    return plain


def _from_plain(name: str, plain: Any) -> Part:
    if not isinstance(plain, dict) or TARGET not in plain:
        raise ValueError(
            f"harness YAML, part {name!r}: expected a mapping with {TARGET} and the arguments of the part, "
            f"got {plain!r:.200}"
        )
    values = {key: value for key, value in plain.items() if key != TARGET}
    target = str(plain[TARGET])
    module, _, attribute = target.rpartition(".")
    try:
        cls = getattr(importlib.import_module(module), attribute)
        if not (isinstance(cls, type) and is_dataclass(cls)):  # never call whatever a file may name
            raise TypeError("a part is a dataclass with sentences() and warn()")
        return cast(Part, cls(**values))
    except (ImportError, AttributeError, TypeError, ValueError) as error:
        raise ValueError(
            f"harness YAML, part {name!r}: cannot build {target!r} with {values} ({error})"
        ) from error
