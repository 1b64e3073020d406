"""The two commands of WebShop: `search[words]` and `click[something on the page]`."""

from __future__ import annotations

import re
from collections.abc import Sequence

from had.envs.webshop.pages import DETAILS, SHOWN_QUERY_CHARACTERS, Page, PageKind
from had.records import HarnessFacts

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
    """The `CommandGrammar` of WebShop, and what harness utilization asks of a shopper.

    A rule holds for every task and is decided by the record alone, without knowledge of what is wanted:

    | component | a shopper obeys when | why |
    |---|---|---|
    | available | it clicks something that the page lists, or searches | pages list what can be clicked |
    | situation | it asks for nothing that is so already | see below |
    | budget | while urged, it opens no description, features or reviews | these only inform, as `look` does |
    | failure | it repeats no command reported without effect on this page | as everywhere |
    | stall | a new (page, selection) or success comes within five turns | as everywhere |

    Situation: nothing in a shop has to be held to be used, so the rule of other environments, to use no
    object that is not held, could not be broken. What the situation part reports here are the selected
    options and the page with its query, neither of which a page itself shows. To select a value that is
    reported as selected, or to repeat the search whose first page is reported as open, changes nothing in
    any task: these two break the rule. Of the listed commands exactly these have no effect.

    No rule: buying while an option group has no selection (whether an option matters is knowledge of the
    task), opening a product once more (it may be the best one after all), and going back.
    """

    def accepts(self, command: str) -> bool:
        return parse_command(command) is not None

    def required_object(self, command: str) -> str | None:
        return None

    def is_idle(self, command: str) -> bool:
        """True for opening a product's description, features or reviews: that only informs."""
        parsed = parse_command(command)
        return parsed is not None and parsed in {("click", detail.lower()) for detail in DETAILS}

    def is_already_so(self, command: str, facts: HarnessFacts) -> bool:
        parsed = parse_command(command)
        if parsed is None:
            return False
        verb, argument = parsed
        if verb == "click":
            return any(selected.partition(": ")[2] == argument for selected in facts.held)
        query = " ".join(argument.split())
        is_named_whole = len(query) <= SHOWN_QUERY_CHARACTERS  # else two searches may have one name
        return is_named_whole and facts.location == Page(PageKind.RESULTS, query).name

    def is_listed(self, command: str, commands: Sequence[str]) -> bool:
        """True when a command is one of the admissible ones; any search is, where searching is listed."""
        parsed = parse_command(command)
        if parsed is None:
            return False
        verb, argument = parsed
        return SEARCH_COMMAND in commands if verb == "search" else f"click[{argument}]" in commands
