"""`EngineMemory`: remembers what the TextWorld engine computes again and again from the same text.

It translates a game's PDDL to SAS four times per episode, and parses the same grammar rules and queries at
every step. All three are functions of their text alone, so the engine's answers stay what they are.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from functools import lru_cache
from typing import Any

import fast_downward
from textworld.envs.pddl import textgen
from textworld.logic import Rule

# A translated game takes about 2 MB; enough for the games that one worker plays again within a round.
_MAX_TRANSLATIONS = 16
# A grammar has about 80 rules and 40 queries; the goal sentence adds one text per game.
_MAX_TEXTS = 1024


class EngineMemory:
    """Replaces three functions of the engine by ones that remember, but only inside `in_use`."""

    def __init__(self) -> None:
        self._translate: Callable[..., Any] = fast_downward.pddl2sas
        self._parse: Callable[..., list[Any]] = textgen._parse_and_convert
        self._query: classmethod[Rule, Any, Any] = Rule.__dict__["parse_conjunctive_query"]
        self._translated = lru_cache(_MAX_TRANSLATIONS)(self._translate)
        self._parsed = lru_cache(_MAX_TEXTS)(self._parse)
        self._queried = lru_cache(_MAX_TEXTS)(Rule.parse_conjunctive_query)

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Within this block the engine remembers; not for several threads at once."""
        fast_downward.pddl2sas = self._translate_once
        textgen._parse_and_convert = self._parse_once
        Rule.parse_conjunctive_query = staticmethod(self._queried)
        arguments = sys.argv  # the translator puts its own in their place
        try:
            yield
        finally:
            sys.argv = arguments
            fast_downward.pddl2sas = self._translate
            textgen._parse_and_convert = self._parse
            Rule.parse_conjunctive_query = self._query

    def _translate_once(
        self, domain: str, problem: str, verbose: bool = False, optimize: bool = False
    ) -> Any:
        """The one translation serves the planner, too: nobody asks it for a plan."""
        return self._translated(domain, problem)

    def _parse_once(self, text: str, rule_name: str, **_: Any) -> list[Any]:
        """A fresh copy each time, for the engine writes into the symbols."""
        return deepcopy(self._parsed(text, rule_name=rule_name))
