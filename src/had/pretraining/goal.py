"""Reads ALFWorld's template goals: what has to be done with which kind of object."""

from __future__ import annotations

import re
from dataclasses import dataclass

_LAMP = re.compile(r"^(?:look at|examine the) (?P<object>\w+) (?:under|with) the (?P<target>\w+)$")
_TWO = re.compile(r"^(?:put two|find two) (?P<object>\w+) (?:in|and put them in) (?P<target>\w+)$")
_TREAT = re.compile(r"^(?P<verb>clean|heat|cool) some (?P<object>\w+) and put it in (?P<target>\w+)$")
_TREATED = re.compile(r"^put an? (?P<verb>clean|hot|cool) (?P<object>\w+) in (?P<target>\w+)$")
_PLACE = re.compile(r"^put (?:some|an?) (?P<object>\w+) (?:on|in) (?P<target>\w+)$")


@dataclass(frozen=True)
class Goal:
    """A parsed template goal.

    Attributes:
        object: type of the object, e.g. `mug`.
        target: type of the receptacle it goes to, or of the lamp.
        treatment: `clean`, `heat`, `cool`, or None.
        count: objects to place, 1 or 2.
        is_lamp: the object is to be held in the light of the target.
    """

    object: str
    target: str
    treatment: str | None = None
    count: int = 1
    is_lamp: bool = False


def parse_goal(text: str) -> Goal:
    """The goal behind a template sentence.

    Raises:
        ValueError: not one of ALFWorld's templates (a human annotation, for example).
    """
    sentence = text.strip().rstrip(".").lower()
    if match := _LAMP.match(sentence):
        return Goal(match["object"], match["target"], is_lamp=True)
    if match := _TWO.match(sentence):
        return Goal(match["object"], match["target"], count=2)
    if match := _TREAT.match(sentence) or _TREATED.match(sentence):
        verb = "heat" if match["verb"] == "hot" else match["verb"]
        return Goal(match["object"], match["target"], treatment=verb)
    if match := _PLACE.match(sentence):
        return Goal(match["object"], match["target"])
    raise ValueError(f"goal: expected one of ALFWorld's template sentences, got {text!r}")
