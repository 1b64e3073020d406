"""The words of a shop: product ids and page texts for the tokenizer, and new ids from episode to episode."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from had.envs.base import TextEnv
from had.envs.webshop.env import SEPARATOR
from had.pretraining.shopper import Shopper
from had.pretraining.shopping_list import read_goal
from had.pretraining.world import Words
from had.prompts.views import Shown, ShownTurn
from had.records import Task

MAX_TURNS = 15
PHRASES = (
    SEPARATOR.rstrip(),  # so that the text behind it begins with a space, as words do elsewhere
    "Back to Search",
    " Page",
    " (Total results:",
    " Next >",
    " < Prev",
    " Price: $",
    " $",
    " Rating: N.A.",
    " Description",
    " Features",
    " Reviews",
    " Buy Now",
    "WebShop",
    "Thought:",
    "\nAction:",
    "\n-",
    " search[<query>]",
    " click[back to search]",
    " click[< prev]",
    " click[next >]",
    " click[description]",
    " click[features]",
    " click[reviews]",
    " click[buy now]",
    " search[",
    " click[",
    " the search page",
    " results page",
    " product",
    " nothing",
    " none",
    " I look at",
    " I select",
    " I need",
    " No",
    " I buy it.",
    " All is selected.",
    " Nothing here fits.",
    " and price lower than",
    " dollars",
    " with",
    " commands",
    " command",
    " turns",
    " turn",
    " times",
    " once",
)
_ID = re.compile(r"(?=[a-z0-9]*\d)[a-z0-9]{10}")
_CLICKED_ID = re.compile(rf"click\[({_ID.pattern})\]")
_GOAL_END = re.compile(r" with [^:,]+: | and price lower than |, and price lower than ")
_ANY_ID = re.compile(r"\b[A-Za-z0-9]{10}\b")


@dataclass(frozen=True)
class ShopLexicon:
    """A `Lexicon`: ids, properties, things, option names and values are tokens, and so are their commands.

    Ids are tokens in capitals (pages), without (harness) and as commands.

    Attributes:
        make_env: makes a shop.
        num_games: tasks that a good shopper plays to see pages.
    """

    make_env: Callable[[], TextEnv]
    num_games: int = 400

    def words(self, tasks: Sequence[Task]) -> Words:
        ids: set[str] = set()
        texts: list[str] = []
        env = self.make_env()
        for task in tasks[:: max(1, len(tasks) // self.num_games)]:
            shopper = Shopper()
            step = env.reset(task)
            shopper.start(task.goal, step)
            texts.append(task.goal)
            for _ in range(MAX_TURNS):
                decision = shopper.decide()
                step = env.step(decision.command)
                texts += [decision.reply, _ANY_ID.sub("", step.observation)]
                if step.is_done:
                    break
                shopper.observe(decision.command, step)
                ids |= set(_CLICKED_ID.findall("\n".join(step.commands)))
        env.close()
        names = [name.upper() for name in sorted(ids)]
        clicked = [f" click[{name}]" for name in sorted(ids)]
        fixed = [*PHRASES, *(f" {name}" for name in sorted(ids)), *clicked, *goal_phrases(tasks)]
        return Words(names, tuple(fixed), texts)


def goal_phrases(tasks: Sequence[Task]) -> list[str]:
    """Properties, things, and names and values of options, as goals, pages, searches and commands show them.

    In a goal such as `dust proof, shock absorbing phone cases with color: red` a property stands before a
    comma, or, where it does so in another goal, before the thing.
    """
    lists = [read_goal(task.goal) for task in tasks]
    properties = {piece for task in tasks for piece in _listed(task.goal)[:-1]}
    things: set[str] = set()
    for task in tasks:
        last = _listed(task.goal)[-1]
        known = max((name for name in properties if last.startswith(f"{name} ")), key=len, default="")
        things.add(last.removeprefix(known).strip())
    names = {name for wanted in lists for name in wanted.options}
    values = {value for wanted in lists for value in wanted.values}
    words = [f" {word}" for word in sorted(properties | things | names | values)]
    titles = [f" {word.title()}" for word in sorted(properties)]
    searches = [f" search[{word}" for word in sorted(properties)]
    return [*words, *titles, *searches, *(f" click[{value}]" for value in sorted(values))]


def _listed(goal: str) -> list[str]:
    """`["dust proof", "shock absorbing phone cases"]`."""
    thing = _GOAL_END.split(goal)[0].removeprefix("Find me ")
    return [piece.strip() for piece in thing.split(",")]


class IdDisguise:
    """The `Disguise` of a shop: products exchange their ids, wherever these stand and in either case."""

    def draw(
        self, goal: str, places: Sequence[str], known: Sequence[str], rng: random.Random
    ) -> dict[str, str]:
        ids = sorted(name.strip() for name in known if _ID.fullmatch(name.strip()))
        return dict(zip(ids, rng.sample(ids, len(ids)), strict=True))

    def text(self, text: str, names: Mapping[str, str]) -> str:
        return _ANY_ID.sub(lambda match: _renamed(match[0], names), text)

    def turn(self, turn: ShownTurn, names: Mapping[str, str], reply: str = "") -> Shown:
        return Shown(
            self.text(turn.observation, names),
            tuple(self.text(command, names) for command in turn.commands),
            self.text(turn.harness_text, names),
            self.text(reply, names),
        )


def _renamed(name: str, names: Mapping[str, str]) -> str:
    new = names.get(name.lower())
    if new is None:
        return name
    return new.upper() if name.isupper() else new
