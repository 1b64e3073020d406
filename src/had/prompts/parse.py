"""Finds the one command in a reply. Total: no reply, however odd, raises."""

from __future__ import annotations

import re
from dataclasses import dataclass

from had.records import ParseFailure

# "Action:" at the start of a line, also quoted, bulleted or set in bold by a model that likes markdown
_ACTION_LINE = re.compile(r"^[ \t>*#`_-]*action[*_`]*[ \t]*:[*_`]*", re.IGNORECASE | re.MULTILINE)
_THINK_END = "</think>"
_WRAPPING = " \t\r*_`\"'"


@dataclass(frozen=True)
class ParsedAction:
    """Where the command stands in the text of a reply.

    Attributes:
        action: the command, without wrapping quotes or marks.
        marker_end: character offset behind `Action:`.
        start, end: character range [start, end) of the command.
    """

    action: str
    marker_end: int
    start: int
    end: int


def parse_action(text: str) -> ParsedAction | ParseFailure:
    """The command of a reply, or why there is none.

    A reply has two lines, `Thought: …` and `Action: …`. Anything before the first `Action:` counts as
    reasoning, whatever a thinking block holds is ignored, and more than one `Action:` line is a failure:
    which one is meant would be a guess.
    """
    if not text.strip():
        return ParseFailure.EMPTY
    offset = text.rfind(_THINK_END) + len(_THINK_END) if _THINK_END in text else 0
    markers = list(_ACTION_LINE.finditer(text, offset))
    if not markers:
        return ParseFailure.NO_ACTION
    if len(markers) > 1:
        return ParseFailure.SEVERAL_ACTIONS
    start = markers[0].end()
    newline = text.find("\n", start)
    end = len(text) if newline < 0 else newline
    while start < end and text[start] in _WRAPPING:
        start += 1
    while end > start and text[end - 1] in _WRAPPING:
        end -= 1
    if start == end:
        return ParseFailure.EMPTY_ACTION
    return ParsedAction(text[start:end], markers[0].end(), start, end)
