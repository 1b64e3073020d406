"""The words of household games, for their tokenizer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from had.envs.alfworld.game import read_game
from had.pretraining.world import Words
from had.records import Task

THOUGHT_WORDS = "I do not need the. The clean hot cool"
NUMBERS = " ".join(str(number) for number in [*range(10), *range(10)])  # each a token with its space
GAME_PHRASES = (
    "Nothing happens.",
    "You are in the middle of a room. Looking quickly around you, you see",
    "You arrive at",
    "You open the",
    "You close the",
    "You pick up the",
    "You move the",
    "You clean the",
    "You heat the",
    "You cool the",
    "You turn on the",
    " from the",
    " to the",
    " using the",
    " is open. In it, you see",
    " is closed.",
    ". On the",
    ", you see",
    " nothing",
    ", and a",
    ", and an",
    ", a",
    ", an",
    "You are carrying:",
    "You are not carrying anything.",
    "Thought:",
    "Action:",
    " I want",
    ". Back to",
    " at",
    " must be",
    " goes to the",
    "\nAction:",
    "\n-",
    " go to",
    " close",
    " help",
    " inventory",
    " look",
    " take",
    " move",
    " open",
    " clean",
    " heat",
    " cool",
    " use",
    " examine",
    " from",
    " with",
    " commands",
    " command",
    " turns",
    " times",
    " once",
)


@dataclass(frozen=True)
class HouseholdLexicon:
    """A `Lexicon`: the places of the games are names.

    Attributes:
        num_games: games that are read for them.
    """

    num_games: int = 600

    def words(self, tasks: Sequence[Task]) -> Words:
        known = [read_game(task.source) for task in tasks[:: max(1, len(tasks) // self.num_games)]]
        places = sorted(
            {game.names[key] for game in known for key, kind in game.types.items() if kind == "receptacle"}
        )
        kinds = {name.rpartition(" ")[0] for game in known for name in game.names.values()}
        texts = [task.goal for task in tasks] + [THOUGHT_WORDS, *[NUMBERS] * 300]
        words = [f" {kind} 1." for kind in sorted(kinds)]
        return Words(places, GAME_PHRASES, texts + words * 20)
