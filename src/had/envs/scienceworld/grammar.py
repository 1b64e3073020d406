"""`ScienceWorldGrammar`: what can be said of a ScienceWorld command from its text alone.

What the components of harness utilization mean here (had.metrics.harness_utilization):

- *available*: the environment lists no commands (a state has about 900 valid ones, and to enumerate them
  takes ten times as long as a step). A command of the grammar is available unless the simulator answers that
  it knows no such command in this state: then the form is right but a thing it names is not at hand. While
  the simulator asks which of several commands was meant, only the numbers that it lists are available.
- *situation*: things that a command calls "… in inventory" must be held. No other command needs a held thing:
  the simulator moves, pours, uses and even drops whatever is within reach.
- *budget*: under the urge, commands that only show something again do not obey: look (around, at, in),
  examine, inventory, task, help, objects. Reading does: a recipe can be needed. So does waiting: some tasks
  need time to pass.
- *failure*, *stall*: as everywhere. A state is the room, the things held, and what look around and inventory
  say (doors, devices, contents), less the readings of instruments that change by themselves.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from had.envs.scienceworld.templates import FORMS

_OBJECT = r"\S.*?"
_FORM = re.compile(
    r"\d+|" + "|".join(form.replace("OBJ", _OBJECT) for form in FORMS),  # a number answers a question
    re.IGNORECASE,
)
_IDLE = re.compile(r"(?:look|examine|inventory|task|help|objects)\b", re.IGNORECASE)
_VERBS = sorted({form.partition(" OBJ")[0] for form in FORMS if "OBJ" in form}, key=len, reverse=True)
_IN_INVENTORY = re.compile(rf"(?:{'|'.join(_VERBS)}) (?P<things>.+?) in inventory\b", re.IGNORECASE)
_PREPOSITION = re.compile(r" (?:to|in|into|on|with) ", re.IGNORECASE)
# Names of kinds, not of things: the parser takes them too, so they say nothing about what is held.
_KINDS = re.compile(r"component|object|living thing|organism|substance|liquid|solid|gas|.* containing .*")


class ScienceWorldGrammar:
    """The `CommandGrammar` of ScienceWorld. The simulator does not tell upper case from lower."""

    def accepts(self, command: str) -> bool:
        return _FORM.fullmatch(" ".join(command.split())) is not None

    def is_listed(self, command: str, commands: Sequence[str]) -> bool:
        return command.strip() in commands

    def required_object(self, command: str) -> str | None:
        match = _IN_INVENTORY.match(" ".join(command.split()))
        if match is None:
            return None
        thing = _PREPOSITION.split(match["things"])[-1]  # of "seed in jar in inventory" the jar is held
        return None if _KINDS.fullmatch(thing.lower()) else thing

    def is_idle(self, command: str) -> bool:
        return self.accepts(command) and _IDLE.match(command.strip()) is not None
