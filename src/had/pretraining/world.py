"""What a recipe has to know of an environment: how it is played, by whom, and in which words."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from had.envs.base import CommandGrammar, TextEnv
from had.pretraining.player import Habits, ImitatedPlayer
from had.pretraining.strays import ListedStrays, Strays
from had.prompts.views import Shown, ShownTurn
from had.records import Task


@dataclass(frozen=True)
class Words:
    """What the tokenizer of a world is made of.

    Attributes:
        names: become one token each, the space before them included.
        phrases: become one token each, as they are.
        texts: for the words of the rest.
    """

    names: Sequence[str]
    phrases: Sequence[str]
    texts: Sequence[str]


class Lexicon(Protocol):
    """Finds the words of a world."""

    def words(self, tasks: Sequence[Task]) -> Words:
        """The words of training tasks."""


class Disguise(Protocol):
    """Renames things in an episode's texts: a model must copy names instead of learning them by heart."""

    def draw(
        self, goal: str, places: Sequence[str], known: Sequence[str], rng: random.Random
    ) -> Mapping[str, str]:
        """New names for the things of an episode; empty to leave it as it is.

        Args:
            goal: the task text.
            places: of the first state.
            known: texts that are tokens of their own.
            rng: draws.
        """

    def text(self, text: str, names: Mapping[str, str]) -> str:
        """The text with everything renamed at once."""

    def turn(self, turn: ShownTurn, names: Mapping[str, str], reply: str = "") -> Shown:
        """The turn with everything renamed, as the environment would show it."""


@dataclass(frozen=True)
class World:
    """An environment with its player and its words.

    Attributes:
        make_env: makes one environment.
        grammar: of its commands.
        make_player: makes the imitated player of one episode.
        lexicon: finds the words of the tokenizer.
        disguise: renames things from episode to episode.
        strays: draws the commands of noise.
    """

    make_env: Callable[[], TextEnv]
    grammar: CommandGrammar
    make_player: Callable[[Habits, random.Random], ImitatedPlayer]
    lexicon: Lexicon
    disguise: Disguise
    strays: Strays = field(default_factory=ListedStrays)
