"""`HouseholdGrammar`: what can be said of an ALFWorld command from its text alone."""

from __future__ import annotations

import re
from collections.abc import Sequence

_THING = r"[a-z][a-z -]* \d+"
_FORMS = re.compile(
    rf"look|inventory|help|(?:go to|open|close|use|examine) {_THING}|take {_THING} from {_THING}"
    rf"|move (?P<moved>{_THING}) to {_THING}"
    rf"|(?:heat|cool|clean) (?P<treated>{_THING}) with {_THING}"
    rf"|slice {_THING} with (?P<knife>{_THING})"
)
_IDLE = ("look", "inventory", "help", "examine")


class HouseholdGrammar:
    """The `CommandGrammar` of ALFWorld-format games; a thing is word(s) and a number, such as "mug 1"."""

    def accepts(self, command: str) -> bool:
        return _FORMS.fullmatch(command) is not None

    def is_listed(self, command: str, commands: Sequence[str]) -> bool:
        return command in commands

    def required_object(self, command: str) -> str | None:
        match = _FORMS.fullmatch(command)
        if match is None:
            return None
        return match["moved"] or match["treated"] or match["knife"]

    def is_idle(self, command: str) -> bool:
        return self.accepts(command) and command.startswith(_IDLE)
