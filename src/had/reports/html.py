"""Self-contained HTML: tables, figures inside the page, episodes as readable text."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from had.reports.tables import Table

STYLE = (
    "body{font:15px/1.45 system-ui,sans-serif;max-width:1100px;margin:2em auto;padding:0 1em;color:#222}"
    "table{border-collapse:collapse;margin:1em 0;font-size:13px}caption{text-align:left;font-weight:600}"
    "th,td{border-bottom:1px solid #ddd;padding:.25em .7em;text-align:left;white-space:nowrap}"
    "img{max-width:100%}pre{background:#f6f6f6;padding:1em;white-space:pre-wrap}summary{cursor:pointer}"
    ".wide{overflow-x:auto}"
)


def page(title: str, parts: Sequence[str]) -> str:
    """A whole page; `parts` are pieces of HTML, one below the other."""
    head = f'<meta charset="utf-8"><title>{escape(title)}</title><style>{STYLE}</style>'
    body = "\n".join([heading(title, level=1), *parts])
    return f'<!doctype html>\n<html lang="en"><head>{head}</head>\n<body>\n{body}\n</body></html>\n'


def heading(text: str, level: int = 2) -> str:
    """A heading."""
    return f"<h{level}>{escape(text)}</h{level}>"


def table(content: Table) -> str:
    """A table with its title and caption."""
    head = "".join(f"<th>{escape(header)}</th>" for header in content.headers)
    lines = ["".join(f"<td>{escape(cell)}</td>" for cell in row) for row in content.rows]
    body = "\n".join(f"<tr>{line}</tr>" for line in lines)
    below = f"<p>{escape(content.caption)}</p>" if content.caption else ""
    return (
        f'<div class="wide"><table><caption>{escape(content.title)}</caption>\n'
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody></table></div>{below}"
    )


def figure(path: Path | str, description: str) -> str:
    """A PNG file, inside the page."""
    data = b64encode(Path(path).read_bytes()).decode()
    return f'<p><img alt="{escape(description, quote=True)}" src="data:image/png;base64,{data}"></p>'


def folded(title: str, text: str) -> str:
    """Preformatted text that opens with a click."""
    return f"<details><summary>{escape(title)}</summary><pre>{escape(text)}</pre></details>"


def episode_text(episode: Mapping[str, Any]) -> str:
    """An episode of `transcripts/*.jsonl` as one reads it: what was shown, what was said, what happened."""
    lines = [f"Task: {episode['goal']}", f"End: {episode['status']}, {len(episode['turns'])} turns"]
    if episode["message"]:
        lines.append(f"Message: {episode['message']}")
    for turn in episode["turns"]:
        lines += ["", f"--- turn {turn['turn']} ---", turn["observation"]]
        if turn["harness"]:
            lines.append(f"[harness] {turn['harness']}")
        lines += [f"> {line}" for line in turn["reply"].splitlines()]
        lines.append(f"({_outcome(turn)})")
    return "\n".join(lines)


def _outcome(turn: Mapping[str, Any]) -> str:
    """What became of a reply, in a few words."""
    words = [turn["effect"].replace("_", " ")]
    if turn["failure"]:
        words.append(f"no command: {turn['failure'].replace('_', ' ')}")
    elif not turn["is_available"]:
        words.append("not among the commands")
    if turn["is_blocked"]:
        words.append("blocked")
    if turn["is_new_state"]:
        words.append("new state")
    return ", ".join(words)
