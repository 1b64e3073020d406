"""How ScienceWorld 1.2.3 says that a command had no effect.

The texts were collected in real play of all 30 tasks (random commands over the possible objects, mixed with
gold paths), not guessed; tests/envs/scienceworld/test_refusals.py provokes every one of them.
"""

from __future__ import annotations

import re

# The parser can do nothing of the kind here and now: wrong form, or an object that is not at hand. The second
# is the answer to anything but a number while a question is open.
UNAVAILABLE = (
    r"No known action matches that input\.",
    r"Unknown action\.  Type 'help' for a list of actions, .+",
)

# The command exists here, but nothing came of it. `X` stands for the name of a thing.
WITHOUT_EFFECT = (
    r"The X is already (?:open|closed|activated|deactivated)\.",
    r"The X is not (?:openable|closeable|moveable|edible|open|a container)\.",
    r"The X is not something that can be activated\.",
    r"The X isn't open, so you can't see inside\.",
    r"The X does not contain any liquids to dunk into\.",
    r"The X can't be poured out, because it's not open\.",
    r"The X the X is in is not movable\.",
    r"It'?s not clear how to X\.",
    r"I'm not sure how to (?:use X|pour a solid)\.",
    r"That can't be moved there(?:, because X)?\.",
    r"That thing doesn't appear to have a temperature that the X can read\.",
    r"That container is empty, so there are no items to mix\.",
    r"There is only one thing \(X\)",
    r"Mixing the contents of the X does not appear to produce anything new\.",
    r"You can't (?:move|dunk) something into itself\.",
    r"You can't pick up a gas directly\.",
    r"You can't pick up a liquid directly\. Try X",
    r"Something can't be connected to itself\.",
    r"Connections must specify specific points of contact on X",
    r"X is already connected, and must be disconnected before it can be connected to something else",
    r"You must disconnect entire objects \(such as X\) instead of just single terminals",
)

QUESTION = "Ambiguous request: "

_CHOICE = re.compile(r"^(\d+):\t", re.MULTILINE)


def _any_of(patterns: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(pattern.replace("X", r".+?") for pattern in patterns))


_UNAVAILABLE = _any_of(UNAVAILABLE)
_REFUSED = _any_of(UNAVAILABLE + WITHOUT_EFFECT)


def is_unavailable(observation: str) -> bool:
    """True when the simulator knew no such command in this state."""
    return _UNAVAILABLE.fullmatch(observation.strip()) is not None


def is_refused(observation: str) -> bool:
    """True when the command had no effect, whatever the reason."""
    return _REFUSED.fullmatch(observation.strip()) is not None


def choices(observation: str) -> tuple[str, ...]:
    """The numbers that answer the question which of several commands was meant; empty for no question."""
    return tuple(_CHOICE.findall(observation)) if observation.startswith(QUESTION) else ()
