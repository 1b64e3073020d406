"""The two commands of WebShop: `search[words]` and `click[something on the page]`."""

from __future__ import annotations

import re
from collections.abc import Sequence

from had.envs.webshop.pages import DETAILS

# Stands in the list of admissible commands for every search; it is not itself a search.
SEARCH_COMMAND = "search[<query>]"

_FORM = re.compile(r"(?P<verb>search|click)\[(?P<argument>.+)\]", re.DOTALL)


def parse_command(command: str) -> tuple[str, str] | None:
    """(`search` or `click`, its argument in lower case), or None for anything else."""
    match = _FORM.fullmatch(command.strip())
    if match is None or not match["argument"].strip() or command.strip() == SEARCH_COMMAND:
        return None
    return match["verb"], match["argument"].lower()


class WebShopGrammar:
    """The `CommandGrammar` of WebShop.

    No command uses a held object: options are selected, not held in the sense of the validity check. Buying
    while an option group has no selection is allowed: that it is unwise is knowledge of the task.
    """

    def accepts(self, command: str) -> bool:
        return parse_command(command) is not None

    def required_object(self, command: str) -> str | None:
        return None

    def is_idle(self, command: str) -> bool:
        """True for opening a product's description, features or reviews: that only informs."""
        parsed = parse_command(command)
        return parsed is not None and parsed in {("click", detail.lower()) for detail in DETAILS}

    def is_listed(self, command: str, commands: Sequence[str]) -> bool:
        """True when a command is one of the admissible ones; any search is, where searching is listed."""
        parsed = parse_command(command)
        if parsed is None:
            return False
        verb, argument = parsed
        return SEARCH_COMMAND in commands if verb == "search" else f"click[{argument}]" in commands
