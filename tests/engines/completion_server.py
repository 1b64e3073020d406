"""A small server that behaves like an OpenAI-compatible vLLM server; a process of its own, to be killed.

Its model is a table: the distribution of the next token depends on the last token and on one loaded vector.
Run as `python completion_server.py PORT MODEL`. Only the standard library: it must start at once.
"""

from __future__ import annotations

import json
import math
import random
import struct
import sys
import threading
import time
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

VOCAB, MAX_MODEL_LEN = 40, 65
NO_BIAS = (0.0,) * VOCAB


def table_logprobs(last: int, bias: Sequence[float] = NO_BIAS) -> list[float]:
    """Log-probabilities of all tokens after a token."""
    rng = random.Random(last)
    logits = [3 * rng.random() + b for b in bias]
    norm = math.log(sum(math.exp(logit) for logit in logits))
    return [logit - norm for logit in logits]


def read_bias(folder: str) -> tuple[float, ...]:
    """The tensor `bias` of a safetensors file."""
    data = (Path(folder) / "model.safetensors").read_bytes()
    (header_size,) = struct.unpack("<Q", data[:8])
    begin, end = json.loads(data[8 : 8 + header_size])["bias"]["data_offsets"]
    return struct.unpack(f"<{VOCAB}f", data[8 + header_size :][begin:end])


class State:
    """What the server holds."""

    def __init__(self, model: str) -> None:
        self.model, self.bias, self.label = model, NO_BIAS, "default"
        self.num_completions, self.num_failures_left, self.delay_s, self.is_busy = 0, 0, 0.0, False
        self.malformed = ""  # how completions are answered: a status, or a word of `answer_nonsense`
        self.calls: list[str] = []


class Handler(BaseHTTPRequestHandler):
    """The paths that the client uses, and `/inject` for faults."""

    protocol_version = "HTTP/1.1"
    state: State

    def do_GET(self) -> None:
        state = self.state
        answers = {
            "/health": None,
            "/v1/models": {
                "data": [{"id": state.model, "root": state.model, "max_model_len": MAX_MODEL_LEN}]
            },
            "/weight_info": {"weight_version": state.label},
            "/seen": {"completions": state.num_completions, "calls": state.calls},
        }
        self.answer(200 if self.path in answers else 404, answers.get(self.path))

    def do_POST(self) -> None:
        url = urlsplit(self.path)
        raw = self.rfile.read(int(self.headers.get("content-length", 0)))
        body = json.loads(raw) if raw else dict(parse_qsl(url.query))
        if url.path == "/v1/completions":
            status, content = self.complete(body)
            if self.state.malformed:
                self.answer_nonsense(content)
            else:
                self.answer(status, content)
            return
        self.state.calls.append(url.path)
        if url.path == "/inject":
            vars(self.state).update(body)
        elif url.path == "/collective_rpc":
            self.state.bias = read_bias(body["args"][0])
        elif url.path == "/update_weight_version":
            self.state.label = body["new_version"]
        elif url.path == "/reset_prefix_cache":
            self.answer(200, {"success": not self.state.is_busy})
            return
        elif url.path not in ("/sleep", "/wake_up"):
            self.answer(404, {"error": url.path})
            return
        self.answer(200, None)

    def complete(self, body: dict) -> tuple[int, dict]:
        state = self.state
        state.num_completions += 1
        time.sleep(state.delay_s)
        if state.num_failures_left > 0:
            state.num_failures_left -= 1
            return 503, {"error": "overloaded"}
        if body["model"] != state.model:
            return 404, {"error": f"no model {body['model']}"}
        if len(body["prompt"]) + body["max_tokens"] > MAX_MODEL_LEN or max(body["prompt"]) >= VOCAB:
            return 400, {"error": "the prompt is wrong"}
        rng = random.Random(body.get("seed"))
        ids: list[int] = []
        logprobs: list[float] = []
        while len(ids) < body["max_tokens"] and not set(ids[-1:]) & set(body.get("stop_token_ids", ())):
            row = table_logprobs((body["prompt"] + ids)[-1], state.bias)
            greedy = row.index(max(row))
            weights = [math.exp(value) for value in row]
            ids.append(rng.choices(range(VOCAB), weights)[0] if body["temperature"] else greedy)
            logprobs.append(row[ids[-1]])
        choice = {"token_ids": ids if body.get("return_token_ids") else None, "text": "never read"}
        if "logprobs" in body:
            choice["logprobs"] = {"token_logprobs": logprobs}
        if "prompt_logprobs" in body:
            choice["prompt_logprobs"] = self.scores(body["prompt"], body["prompt_logprobs"])
        account = {"prompt_tokens": len(body["prompt"])}
        if len(body["prompt"]) % 2:  # one prompt in two has been seen, to half of its length
            account["prompt_tokens_details"] = {"cached_tokens": len(body["prompt"]) // 2}
        return 200, {"choices": [choice], "usage": account}

    def scores(self, ids: list[int], top_k: int) -> list[dict | None]:
        rows: list[dict | None] = [None]
        for last, own in pairwise(ids):
            row = table_logprobs(last, self.state.bias)
            order = sorted(range(VOCAB), key=lambda token, row=row: -row[token])
            kept = dict.fromkeys([own, *order[:top_k]])
            rows.append({str(i): {"logprob": row[i], "rank": order.index(i) + 1} for i in kept})
        return rows

    def answer_nonsense(self, content: dict) -> None:
        kind, text = self.state.malformed, json.dumps(content).encode()
        if kind.isdigit():
            self.send(int(kind), b"Internal Server Error")
        elif kind == "cut":
            self.send(200, text[:-20], promised=len(text))
            self.close_connection = True
        else:
            content["choices"] = [{"text": "", "token_ids": []}]
            bodies = {"html": b"<html>Bad Gateway</html>", "half": text[:-20], "empty": b"", "list": b"[]"}
            bodies |= {"no choices": b'{"choices": []}', "no logprobs": json.dumps(content).encode()}
            self.send(200, bodies[kind])

    def answer(self, status: int, content: dict | None) -> None:
        self.send(status, b"" if content is None else json.dumps(content).encode())

    def send(self, status: int, data: bytes, promised: int | None = None) -> None:
        try:
            self.send_response(status)
            self.send_header("content-length", str(len(data) if promised is None else promised))
            self.end_headers()
            self.wfile.write(data)
        except OSError:
            self.close_connection = True  # the client has given up

    def log_message(self, *_: object) -> None:
        pass


if __name__ == "__main__":
    Handler.state = State(sys.argv[2])
    ThreadingHTTPServer.daemon_threads = True
    server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler)
    threading.Thread(target=server.serve_forever).start()
