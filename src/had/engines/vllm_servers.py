"""An engine on vLLM servers: one or several replicas of a model behind the OpenAI-compatible interface."""

from __future__ import annotations

import logging
import secrets
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from torch import Tensor

from had.engines.base import EngineFailure, Generation, ModelSource, SamplingParams, check_scorable, refusals
from had.engines.usage import EngineUsage, timed
from had.engines.vllm_answers import choice_of, field
from had.engines.vllm_replica import Patience, RefusedError, Replica, ReplicaSet, UnreachableError
from had.engines.vllm_requests import (
    NUM_SPARE_TOKENS,
    check_top_k,
    ranked_row,
    sampling_options,
    scoring_options,
    top_scores,
)
from had.engines.vllm_transfer import Transfer, reset_prefix_cache
from had.records import TopKScores

_log = logging.getLogger(__name__)


class VLLMServers:
    """Generates with and scores by servers that `src/serve.py` (or `vllm serve`) has started.

    Token ids go out and come back; nothing is ever re-tokenised. A prompt goes to the server that has
    answered its beginning before, and to another one while that server is down.

    Args:
        urls: the replicas, e.g. `[http://127.0.0.1:8000]`; one server each, not a balancer in front of them.
        model: what the servers must serve: folder or hub name, or what names it.
        eos_ids: ids that end a reply.
        max_context_tokens: limit of prompt and reply together; None takes the servers'.
        transfer: how new weights get there; None for a model that never changes (the teacher).
        patience: time limits, pauses between tries, and the budget after which the run stops.
        served_model: name under which the servers serve the model, when it is not that of `model`.
        max_logprobs: most entries per token that can be scored; the servers' `--max-logprobs`.
        max_concurrent: requests that one server is given at once.
        sleeps: let the servers free their GPU while the student trains on it.

    Raises:
        EngineUnavailableError: a server is not healthy in time.
        ValueError: a server serves another model or a shorter context.
    """

    def __init__(
        self,
        urls: Sequence[str],
        model: ModelSource | str | Path,
        eos_ids: Sequence[int],
        max_context_tokens: int | None = None,
        transfer: Transfer | None = None,
        patience: Patience | None = None,
        served_model: str | None = None,
        max_logprobs: int = 64,
        max_concurrent: int = 64,
        sleeps: bool = False,
    ) -> None:
        if not eos_ids:
            raise ValueError(
                "eos_ids: expected at least one end-of-turn id, got none; every reply would run to its limit"
            )
        if max_concurrent < 1:
            raise ValueError(f"max_concurrent: expected >= 1, got {max_concurrent}")
        self._patience = patience or Patience()
        self._servers = ReplicaSet(urls, self._patience, max_concurrent)
        self._transfer, self._eos_ids = transfer, tuple(eos_ids)
        self._max_logprobs, self._sleeps, self._is_asleep = max_logprobs, sleeps, False
        self._version, self._label = 0, ""
        self.usage = EngineUsage()
        self._restoring = threading.Lock()
        self._run_label = secrets.token_hex(4)  # a server may still have the weights of another run
        self._servers.wait_until_ready()
        expected = served_model or (str(model) if isinstance(model, str | Path) else model.locate())
        cards = self._servers.call_each(lambda replica: _served(replica, expected))
        self._name = expected if served_model else cards[0]["id"]
        served_context = min(card["max_model_len"] for card in cards) - NUM_SPARE_TOKENS
        self._max_context_tokens = max_context_tokens or served_context
        if self._max_context_tokens > served_context:
            raise ValueError(
                f"max_context_tokens: expected at most {served_context} (the servers' --max-model-len less "
                f"{NUM_SPARE_TOKENS}), got {max_context_tokens}; start the servers with --max-model-len "
                f"{self._max_context_tokens + NUM_SPARE_TOKENS} or lower env.max_context_tokens"
            )
        self._pool = ThreadPoolExecutor(max_concurrent * len(self._servers.replicas), "vllm-request")

    @property
    def max_context_tokens(self) -> int:
        return self._max_context_tokens

    @property
    def version(self) -> int:
        return self._version

    @property
    def loaded(self) -> tuple[int, str]:
        return self._version, self._label

    def follow(self, loaded: tuple[int, str]) -> None:
        self._version, self._label = loaded

    @timed
    def generate(
        self, prompts: Sequence[Sequence[int]], params: SamplingParams, seeds: Sequence[int]
    ) -> list[Generation | EngineFailure]:
        answers: dict[int, Generation | EngineFailure] = {}
        bodies = {}
        refused = refusals(prompts, seeds, params.max_new_tokens, self._max_context_tokens)
        for index, (prompt, failure) in enumerate(zip(prompts, refused, strict=True)):
            if failure is not None:
                answers[index] = failure
            else:
                options = sampling_options(params, seeds[index], self._eos_ids)
                bodies[index] = {"prompt": list(prompt), "return_token_ids": True, **options}
        for index, answer in self._complete(bodies).items():
            answers[index] = (
                EngineFailure(str(answer)) if isinstance(answer, RefusedError) else self._generation(answer)
            )
        generated = [answers[index] for index in range(len(prompts))]
        self.usage.note_generated(generated)
        return generated

    @timed
    def score(
        self, prompts: Sequence[Sequence[int]], responses: Sequence[Sequence[int]], top_k: int
    ) -> list[TopKScores]:
        check_top_k(top_k, self._max_logprobs)
        return [top_scores(rows, top_k) for rows in self._response_rows(prompts, responses, top_k)]

    @timed
    def logprobs(
        self, prompts: Sequence[Sequence[int]], responses: Sequence[Sequence[int]]
    ) -> list[tuple[float, ...]]:
        scored = self._response_rows(prompts, responses, top_k=0)
        return [tuple(row[0][1] for row in rows) for rows in scored]

    def load_weights(self, version: int, state_dict: Mapping[str, Tensor]) -> None:
        """Send new weights to every server and make it forget all cached prefixes.

        Raises:
            EngineUnavailableError: a server does not answer for the whole budget.
            ValueError: there is no transfer, or a server refuses.
        """
        if self._transfer is None:
            raise ValueError(
                f"load_weights({version}): these servers were configured without a way to send weights; "
                "set engine.student.transfer to a Transfer of had.engines.vllm_transfer"
            )
        timeout_s = self._patience.request_timeout_s
        self._wake()
        self._transfer.send(self._servers, version, state_dict, timeout_s)
        self._version, self._label = version, f"{self._run_label}/{version}"
        self._servers.call_each(self._label_weights)

    def sleep(self) -> None:
        if self._sleeps and not self._is_asleep:
            self._servers.call_each(lambda replica: replica.request("POST", "/sleep", params={"level": 1}))
            self._is_asleep = True

    def _wake(self) -> None:
        if self._is_asleep:
            self._servers.call_each(lambda replica: replica.request("POST", "/wake_up"))
            self._is_asleep = False

    def _label_weights(self, replica: Replica) -> None:
        reset_prefix_cache(replica, self._patience.request_timeout_s)
        replica.request("POST", "/update_weight_version", json={"new_version": self._label})

    def _look_for_restarts(self) -> None:
        """A server may have been started anew since the last call."""
        for replica in self._servers.replicas:
            try:
                self._ensure_weights(replica)
            except UnreachableError as error:
                replica.note_failure(str(error))  # the requests themselves will wait for it

    def _ensure_weights(self, replica: Replica) -> None:
        """A server that was started anew serves the weights of its folder again: send the last ones."""
        if not self._label or self._transfer is None:
            return
        with self._restoring:  # many requests wait for the same server
            if field(replica.request("GET", "/weight_info"), "weight_version") == self._label:
                return
            _log.warning("server %s has lost version %d, sending it again", replica.url, self._version)
            self._transfer.send_again(replica, self._version, self._patience.request_timeout_s)
            self._label_weights(replica)

    def _complete(self, bodies: Mapping[int, dict[str, Any]]) -> dict[int, dict[str, Any] | RefusedError]:
        """The answers to some requests by index; a refused request yields its error."""
        self._wake()
        self._look_for_restarts()
        homes = _homes({index: body["prompt"] for index, body in bodies.items()}, self._servers)
        ask = self._asker()
        futures = {
            index: self._pool.submit(ask, homes[index], {"model": self._name, **body})
            for index, body in bodies.items()
        }
        try:
            return {index: self._choice(future.result()) for index, future in futures.items()}
        finally:
            for future in futures.values():
                future.cancel()

    def _choice(self, answer: dict[str, Any] | RefusedError) -> dict[str, Any] | RefusedError:
        """The one choice of an answer, whose account of the prompt is noted."""
        if isinstance(answer, RefusedError):
            return answer
        account = answer["usage"]
        # servers give details with --enable-prompt-tokens-details only, which src/serve.py sets
        details = account.get("prompt_tokens_details") or {}
        self.usage.note_read(account.get("prompt_tokens", 0), details.get("cached_tokens"))
        return dict(answer["choice"])

    def _asker(self) -> Callable[[int, dict[str, Any]], dict[str, Any] | RefusedError]:
        def ask(home: int, body: dict[str, Any]) -> dict[str, Any] | RefusedError:
            def attempt(replica: Replica) -> dict[str, Any]:
                if replica.down_for():
                    self._ensure_weights(replica)  # it may come back with other ones
                answer = replica.request("POST", "/v1/completions", json=body)
                return {"choice": choice_of(answer, body), "usage": answer.get("usage") or {}}

            try:
                return self._servers.call(home, attempt)
            except RefusedError as error:
                if not error.is_about_request:
                    raise
                return error

        return ask

    def _generation(self, choice: Mapping[str, Any]) -> Generation:
        ids, logprobs = choice.get("token_ids"), choice["logprobs"]["token_logprobs"]
        if ids is None or len(ids) != len(logprobs):
            raise ValueError(
                "server: expected token_ids beside as many log-probabilities in the answer "
                f"(return_token_ids), got {ids!r}; it is too old or no vLLM server, and text is never "
                "re-tokenised here"
            )
        return Generation(tuple(ids), tuple(logprobs), bool(ids) and ids[-1] in self._eos_ids)

    def _response_rows(
        self, prompts: Sequence[Sequence[int]], responses: Sequence[Sequence[int]], top_k: int
    ) -> list[list[list[tuple[int, float]]]]:
        """Of each response, (id, log-probability) of each token and of the most probable ones beside it."""
        check_scorable(prompts, responses, self._max_context_tokens)
        bodies = {
            index: {"prompt": [*prompts[index], *response], **scoring_options(top_k)}
            for index, response in enumerate(responses)
            if response
        }
        self.usage.tokens_scored += sum(map(len, responses))
        answers = self._complete(bodies)
        rows: list[list[list[tuple[int, float]]]] = [[] for _ in responses]
        for index, answer in answers.items():
            if isinstance(answer, RefusedError):
                raise ValueError(f"request {index}: {answer}")
            tail = answer["prompt_logprobs"][-len(responses[index]) :]
            rows[index] = [
                ranked_row(own, ((int(id), value["logprob"], value["rank"]) for id, value in entry.items()))
                for own, entry in zip(responses[index], tail, strict=True)
            ]
        return rows


def _served(replica: Replica, expected: str) -> dict[str, Any]:
    """The served model's card: `id`, `root`, `max_model_len`.

    Raises:
        ValueError: it is another model.
    """
    cards = field(replica.request("GET", "/v1/models"), "data")
    for card in cards:
        if expected in (card["id"], card.get("root")):
            return dict(card)
    names = [card.get("root") or card["id"] for card in cards]
    raise ValueError(
        f"server {replica.url}: expected it to serve {expected!r}, it serves {names}; start the server for "
        "this model, or set served_model to the name if it is the same model in another place"
    )


def _homes(prompts: Mapping[int, Sequence[int]], servers: ReplicaSet) -> dict[int, int]:
    """Equal shares of the prompts for the servers; those that begin alike go to the same one."""
    ordered = sorted(prompts, key=lambda index: tuple(prompts[index]))
    num = len(servers.replicas)
    return {index: place * num // len(ordered) for place, index in enumerate(ordered)}
