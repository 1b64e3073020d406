"""One OpenAI-compatible server, and several of them: requests with time limits, retries and a budget."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import httpx

from had.engines.base import EngineUnavailableError

_MAX_BODY_CHARS = 400  # of an answer that is quoted in a message
_RETRIED_STATUS = (408, 409, 425, 429)  # and all of 500 and above
_BAD_REQUEST = (400, 413, 422)
_DEV_MODE = "; paths for weights and sleep need VLLM_SERVER_DEV_MODE=1, which src/serve.py sets"
_log = logging.getLogger(__name__)
logging.getLogger("httpx").setLevel(logging.WARNING)  # it would write a line per request


class RefusedError(ValueError):
    """The server understood the request and will not answer it, however often it is asked.

    Attributes:
        is_about_request: this request is wrong (too long, say), not the way in which the server is used.
    """

    def __init__(self, message: str, is_about_request: bool = False) -> None:
        super().__init__(message)
        self.is_about_request = is_about_request


class UnreachableError(RuntimeError):
    """One try brought no answer; another one may."""


@dataclass(frozen=True)
class Patience:
    """How long servers are waited for.

    Attributes:
        request_timeout_s: seconds that one try may take until its answer is complete.
        budget_s: seconds without any answer after which the run stops.
        first_pause_s, max_pause_s: the pause before the second try, doubled before each further one up to
            the longest.
        startup_timeout_s: seconds that a server may take to load its model.
    """

    request_timeout_s: float = 600.0
    budget_s: float = 300.0
    first_pause_s: float = 0.5
    max_pause_s: float = 15.0
    startup_timeout_s: float = 900.0

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if value <= 0:
                raise ValueError(f"{name}: expected more than 0 seconds, got {value}")

    def pause_s(self, num_failures: int) -> float:
        """The pause after this many failures in a row."""
        return float(min(self.first_pause_s * 2.0 ** min(num_failures - 1, 30), self.max_pause_s))


class Replica:
    """One server.

    Attributes:
        url: where it is, e.g. `http://127.0.0.1:8000`.
        patience: how long it is waited for.
        last_failure: why the last try that failed did so.
    """

    def __init__(self, url: str, patience: Patience, max_connections: int = 64) -> None:
        if not url.startswith(("http://", "https://")):
            raise ValueError(f"urls: expected http://HOST:PORT, got {url!r}")
        self.url, self.patience = url.rstrip("/").removesuffix("/v1"), patience
        limits = httpx.Limits(max_connections=max_connections, max_keepalive_connections=max_connections)
        # the pool may hold a request back for as long as the others take: no limit on that wait
        timeout = httpx.Timeout(patience.request_timeout_s, pool=None)
        is_encrypted = self.url.startswith("https://")  # else no certificates need to be loaded
        self._client = httpx.Client(
            base_url=self.url, limits=limits, timeout=timeout, trust_env=False, verify=is_encrypted
        )
        self._lock = threading.Lock()
        self._num_failures, self._retry_at = 0, 0.0
        self._down_since: float | None = None
        self.last_failure = ""

    def request(self, method: str, path: str, timeout_s: float | None = None, **arguments: Any) -> Any:
        """One try.

        Args:
            method: GET or POST.
            path: what is asked for.
            timeout_s: seconds it may take; None: `request_timeout_s`.
            arguments: of `httpx.Client.request`, e.g. `json`.

        Returns:
            The decoded JSON of the answer, None for an empty one.

        Raises:
            UnreachableError: no answer, or one that says "later".
            RefusedError: an answer that says no.
        """
        if timeout_s is not None:
            arguments["timeout"] = timeout_s
        try:
            answer = self._client.request(method, path, **arguments)
            body = answer.json() if answer.content and answer.is_success else None
        except httpx.TimeoutException as error:
            limit = timeout_s or self.patience.request_timeout_s
            raise UnreachableError(f"{type(error).__name__} after {limit:g} s") from error
        except (httpx.TransportError, ValueError) as error:  # ValueError: half an answer
            raise UnreachableError(f"{type(error).__name__}: {error}") from error
        if answer.status_code >= 500 or answer.status_code in _RETRIED_STATUS:
            raise UnreachableError(f"HTTP {answer.status_code}: {answer.text[:_MAX_BODY_CHARS]}")
        if not answer.is_success:
            raise RefusedError(
                f"{self.url}{path} answered HTTP {answer.status_code}: {answer.text[:_MAX_BODY_CHARS]}"
                + (_DEV_MODE if answer.status_code == 404 else ""),
                answer.status_code in _BAD_REQUEST,
            )
        return body

    @property
    def retry_at(self) -> float:
        """`time.monotonic()` from which on a try makes sense."""
        return self._retry_at

    def down_for(self) -> float:
        """Seconds since the first of the failures in a row; 0 when the last try was answered."""
        since = self._down_since
        return 0.0 if since is None else time.monotonic() - since

    def note_answer(self) -> None:
        """It answers."""
        with self._lock:
            if self._down_since is not None:
                _log.warning(
                    "server %s answers again after %.1f s", self.url, time.monotonic() - self._down_since
                )
            self._num_failures, self._retry_at, self._down_since = 0, 0.0, None

    def note_failure(self, reason: str) -> None:
        """It did not answer; of many requests that fail at once only the first one counts."""
        with self._lock:
            now = time.monotonic()
            if now < self._retry_at:
                return
            if self._down_since is None:
                self._down_since = now
            self.last_failure = reason
            self._num_failures += 1
            pause = self.patience.pause_s(self._num_failures)
            self._retry_at = now + pause
        _log.warning(
            "server %s, failure %d: %s; next try in %.1f s", self.url, self._num_failures, reason, pause
        )

    def close(self) -> None:
        """Close the connections."""
        self._client.close()


class ReplicaSet:
    """Servers of the same model: a request goes to its own one, or to another while that one is down."""

    def __init__(self, urls: Sequence[str], patience: Patience, max_connections: int = 64) -> None:
        if not urls or len(set(urls)) != len(urls):
            raise ValueError(f"urls: expected one or more different servers, got {list(urls)}")
        self.patience = patience
        self.replicas = tuple(Replica(url, patience, max_connections) for url in urls)

    def call(self, home: int, ask: Callable[[Replica], Any]) -> Any:
        """What a server answers.

        Args:
            home: index of the server that is preferred (its cache knows the prompt).
            ask: one try with a server; raises UnreachableError for another.

        Raises:
            EngineUnavailableError: no server has answered for the whole budget.
            RefusedError: the request is wrong.
        """
        ring = self.replicas[home:] + self.replicas[:home]
        return self._persist(ring, ask)

    def call_each(self, ask: Callable[[Replica], Any]) -> list[Any]:
        """What every single server answers, one after the other; raises as `call`."""
        return [self._persist((replica,), ask) for replica in self.replicas]

    def _persist(self, ring: Sequence[Replica], ask: Callable[[Replica], Any]) -> Any:
        num_tries, failing_since, reason = 0, math.inf, ""
        while True:
            replica = _next_in_turn(ring)
            if replica is not None:
                started, num_tries = time.monotonic(), num_tries + 1
                try:
                    answer = ask(replica)
                except UnreachableError as error:
                    reason, failing_since = str(error), min(failing_since, started)
                    replica.note_failure(reason)
                else:
                    replica.note_answer()
                    return answer
            # many requests wait for one server and take turns in trying it: each sees when time is up
            waited = max(time.monotonic() - failing_since, min(each.down_for() for each in ring))
            if waited >= self.patience.budget_s:
                raise EngineUnavailableError(self._gave_up(ring, waited, num_tries, reason))
            pause = min(each.retry_at for each in ring) - time.monotonic()
            time.sleep(min(max(pause, 0.0), self.patience.budget_s - waited))

    def _gave_up(self, ring: Sequence[Replica], waited: float, num_tries: int, reason: str) -> str:
        urls, last = ", ".join(replica.url for replica in ring), reason or ring[0].last_failure
        return (
            f"server {urls}: expected an answer within budget_s={self.patience.budget_s:g} s, got none for "
            f"{waited:.1f} s ({num_tries} tries of this request; the last failure: {last}). Look into the "
            f"server's log and start it again (`python src/serve.py`; `curl {ring[0].url}/health` must "
            "answer), then go on from the last round with resume=CHECKPOINT. A server that is only slow "
            "needs a longer patience.request_timeout_s; one that is gone for good has to leave `urls`"
        )

    def wait_until_ready(self) -> None:
        """Wait until every server answers its health check.

        Raises:
            EngineUnavailableError: one does not within `startup_timeout_s`.
        """
        for replica in self.replicas:
            wait_until_healthy(replica, self.patience.startup_timeout_s)


def _next_in_turn(ring: Sequence[Replica]) -> Replica | None:
    """The first server that is not in a pause; None while all of them are."""
    now = time.monotonic()
    return next((replica for replica in ring if replica.retry_at <= now), None)


def wait_until_healthy(
    replica: Replica, timeout_s: float, is_alive: Callable[[], bool] = lambda: True
) -> None:
    """Ask for the health of a server until it is well.

    Args:
        replica: the server.
        timeout_s: seconds to wait.
        is_alive: False when waiting is in vain (its process has ended).

    Raises:
        EngineUnavailableError: it is not well in time, or it cannot become so.
    """
    deadline, reason, num_failures = time.monotonic() + timeout_s, "not asked yet", 0
    while is_alive():
        try:
            replica.request("GET", "/health", timeout_s=min(timeout_s, 10.0))
        except (UnreachableError, RefusedError) as error:
            reason, num_failures = str(error), num_failures + 1
        else:
            return
        pause = replica.patience.pause_s(num_failures)
        if time.monotonic() + pause > deadline:
            break
        time.sleep(pause)
    state = f"not healthy within {timeout_s:g} s" if is_alive() else "its process has ended"
    raise EngineUnavailableError(
        f"server {replica.url}: expected GET /health to answer 200, got none: {state} (last: {reason}). "
        "Start it with `python src/serve.py role=student` (or role=teacher), read its log, or wait longer "
        "with startup_timeout_s"
    )
