"""Serves the shop to a web browser. An address holds a whole episode: the server keeps nothing."""

from __future__ import annotations

from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock
from urllib.parse import parse_qs, unquote, urlsplit

from had.envs.base import EnvFailure, TaskSource
from had.envs.webshop.env import WebShopEnv
from had.envs.webshop.html_page import Episode, render_episode, render_tasks
from had.envs.webshop.tasks import SPLITS
from had.records import Task

_MAX_LISTED = 200


class ShopServer(ThreadingHTTPServer):
    """A web server on this machine only.

    Args:
        env: plays the episodes.
        tasks: the tasks to choose from.
        port: where to listen; 0 for any free one (see `address`).
    """

    daemon_threads = True

    def __init__(self, env: WebShopEnv, tasks: TaskSource, port: int) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self._env, self._tasks, self._lock = env, tasks, Lock()
        self._by_id: dict[str, Task] = {}

    @property
    def address(self) -> str:
        """Where a browser finds the list of tasks."""
        return f"http://127.0.0.1:{self.server_address[1]}/"

    def page(self, target: str) -> str | None:
        """The document at an address such as `/webshop/test/00003?do=search[lamp]`, or None."""
        with self._lock:  # one environment, and a catalogue on disk is read by one thread at a time
            return self._page(target)

    def _page(self, target: str) -> str | None:
        url = urlsplit(target)
        fields = parse_qs(url.query)
        name = unquote(url.path).strip("/")
        if not name:
            split = fields.get("split", ["test"])[0]
            return render_tasks(split, SPLITS, self._listed(split)) if split in SPLITS else None
        task = self._find(name)
        if task is None:
            return None
        searches = [f"search[{query}]" for query in fields.get("query", ())]
        return render_episode(self._replay(task, [*fields.get("do", ()), *searches]))

    def _listed(self, split: str) -> Sequence[Task]:
        return self._tasks.tasks(split)[:_MAX_LISTED]

    def _find(self, name: str) -> Task | None:
        if not self._by_id:
            self._by_id = {task.id: task for split in SPLITS for task in self._tasks.tasks(split)}
        return self._by_id.get(name)

    def _replay(self, task: Task, commands: Sequence[str]) -> Episode:
        steps = [self._env.reset(task), *(self._env.step(command) for command in commands)]
        return Episode(task, tuple(commands), tuple(steps), self._env.session)


class _Handler(BaseHTTPRequestHandler):
    server: ShopServer

    def do_GET(self) -> None:
        """Answer one request."""
        try:
            page, status = self.server.page(self.path), 200
        except EnvFailure as failure:
            page, status = str(failure), 500
        if page is None:
            page, status = "There is no such page.", 404
        body = page.encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Keep quiet."""
