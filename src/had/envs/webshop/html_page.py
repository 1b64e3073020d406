"""The shop as a web page for people: the page that is open, and beside it what a model sees and knows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from urllib.parse import urlencode

from had.envs.webshop import pages
from had.envs.webshop.pages import PageKind
from had.envs.webshop.session import Session
from had.records import EnvStep, Task

_STYLE = """
body { font-family: sans-serif; margin: 0; color: #222; background: #f4f4f2; }
header { background: #1f3d5a; color: #fff; padding: 12px 24px; } header a { color: #cde; }
main { display: grid; grid-template-columns: 3fr 2fr; gap: 16px; padding: 16px 24px; }
section { background: #fff; border: 1px solid #ddd; border-radius: 6px; padding: 16px; }
section { overflow-wrap: anywhere; }
a.button { display: inline-block; white-space: nowrap; margin: 2px 4px 2px 0; padding: 4px 10px;
  border: 1px solid #17598f; border-radius: 4px; text-decoration: none; color: #17598f; }
a.selected { background: #17598f; color: #fff; }
a.buy { background: #f0a202; color: #222; font-weight: bold; }
.no_effect { color: #a33; } .small { font-size: 85%; color: #555; }
#turns td:last-child { white-space: nowrap; }
td { padding: 3px 8px; vertical-align: top; border-top: 1px solid #eee; }
"""


@dataclass(frozen=True)
class Episode:
    """An episode up to now; its address repeats it, so that a page can be kept, sent and opened again.

    Attributes:
        task: what is played.
        commands: the commands so far.
        steps: the answer to reset and to each command.
        session: where they led.
    """

    task: Task
    commands: tuple[str, ...]
    steps: tuple[EnvStep, ...]
    session: Session

    def address(self, *more: str) -> str:
        """The address of this episode with more commands."""
        fields = [("do", command) for command in (*self.commands, *more)]
        return f"/{self.task.id}?{urlencode(fields)}"


def render_episode(episode: Episode) -> str:
    """The document of an episode: the shop on the left, the state on the right."""
    body = (
        f"<header><a href='/'>Tasks</a> · <b>{escape(episode.task.id)}</b><br>"
        f"<span id='goal'>{escape(episode.task.goal)}</span></header>"
        f"<main><section id='shop'>{_shop(episode)}</section>"
        f"<section id='state'>{_state(episode)}</section></main>"
    )
    return _document(body)


def render_tasks(split: str, splits: Sequence[str], tasks: Sequence[Task]) -> str:
    """The document that lists tasks."""
    others = " · ".join(f"<a href='/?split={escape(name)}'>{escape(name)}</a>" for name in splits)
    rows = "".join(
        f"<tr><td><a href='/{escape(task.id)}'>{escape(task.id)}</a></td><td>{escape(task.goal)}</td></tr>"
        for task in tasks
    )
    listed = f"<section><h2>{escape(split)}</h2><table>{rows}</table></section>"
    return _document(f"<header>{others}</header><main>{listed}</main>")


def _document(body: str) -> str:
    head = f"<head><meta charset='utf-8'><title>Shop</title><style>{_STYLE}</style></head>"
    return f"<!DOCTYPE html><html>{head}<body>{body}</body></html>"


def _shop(episode: Episode) -> str:
    session = episode.session
    if session.page.kind is PageKind.DONE:
        assert session.reward is not None
        return f"<h2>Thank you for shopping with us!</h2><p id='reward'>Reward {session.reward.value:.4f}</p>"
    parts = [_search_box(episode), _buttons(episode)]
    if session.page.kind is PageKind.RESULTS:
        parts.append(_results(episode))
    elif session.page.kind is PageKind.PRODUCT:
        parts.append(_product(episode))
    elif session.page.kind is PageKind.DETAIL:
        product = session.product
        assert product is not None
        parts += [f"<p>{escape(text)}</p>" for text in pages.detail_texts(product, session.page.detail)[2:]]
    return "".join(parts)


def _search_box(episode: Episode) -> str:
    kept = "".join(
        f"<input type='hidden' name='do' value='{escape(command)}'>" for command in episode.commands
    )
    shown = escape(episode.session.page.query)
    field = f"<input name='query' size='50' value='{shown}'>"
    return f"<form action='/{escape(episode.task.id)}'>{kept}{field} <button>Search</button></form>"


def _button(episode: Episode, label: str, style: str = "") -> str:
    target = escape(episode.address(f"click[{label.lower()}]"))
    return f"<a class='button {style}' href='{target}'>{escape(label)}</a>"


def _buttons(episode: Episode) -> str:
    names = (pages.BACK_TO_SEARCH, pages.PREVIOUS, pages.NEXT)
    return "".join(_button(episode, name) for name in names if name.lower() in episode.session.clickable)


def _results(episode: Episode) -> str:
    session = episode.session
    rows = "".join(
        f"<tr><td>{_button(episode, product.asin)}</td><td>{escape(product.title)}</td>"
        f"<td>{escape(product.price_text)}</td></tr>"
        for product in session.listed
    )
    return f"<h3>Page {session.page.number} of {len(session.results)} results</h3><table>{rows}</table>"


def _product(episode: Episode) -> str:
    product, selected = episode.session.product, episode.session.options
    assert product is not None
    groups = "".join(
        f"<p><b>{escape(name)}</b><br>"
        + "".join(
            _button(episode, value, "selected" if selected.get(name) == value else "") for value in values
        )
        + "</p>"
        for name, values in product.options
    )
    details = "".join(_button(episode, detail) for detail in pages.DETAILS)
    return (
        f"<h2>{escape(product.title)}</h2><p>{escape(product.price_text)}</p>{groups}"
        f"<p>{details}</p><p>{_button(episode, pages.BUY, 'buy')}</p>"
    )


def _state(episode: Episode) -> str:
    now = episode.steps[-1]
    told = zip(("reset", *episode.commands), episode.steps, strict=True)
    rows = "".join(
        f"<tr class='{step.effect}'><td>{turn}</td><td>{escape(command)}</td><td>{step.effect}</td></tr>"
        for turn, (command, step) in enumerate(told)
    )
    facts = {
        "Page": now.state.location or "",
        "Selected": ", ".join(now.state.held) or "nothing",
        "Not selected": ", ".join(now.state.places) or "none",
        "Reward": f"{now.reward:.4f}",
    }
    table = "".join(f"<tr><td>{name}</td><td>{escape(value)}</td></tr>" for name, value in facts.items())
    commands = "<br>".join(escape(command) for command in now.commands)
    return (
        f"<h3>State</h3><table>{table}</table><h3>Turns</h3><table id='turns'>{rows}</table>"
        f"<h3>Observation</h3><p class='small' id='observation'>{escape(now.observation)}</p>"
        f"<h3>Admissible commands</h3><p class='small'>{commands}</p>"
    )
