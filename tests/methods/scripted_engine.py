"""An engine that replies with admissible, refused and unreadable commands by seed, and scores for real."""

from __future__ import annotations

import random
from collections.abc import Sequence

from transformers import AutoTokenizer

from had.engines.base import EngineFailure, Generation, SamplingParams
from had.engines.hf import HFEngine

THOUGHTS = ("I go on.", "I look around.", "Here is one.")
REFUSED = ("open fridge 99", "take mug 9 from shelf 9")
HEADER = "Admissible commands:\n"
BULLETS = "-* "  # that may stand before a listed command


class ScriptedEngine(HFEngine):
    """Replies by seed, whatever the weights are, so that runs of different methods visit the same states.

    Args:
        tokenizer: folder of the tokenizer.
        unreadable, refused: shares of replies without a command and with a refused one.
        arguments: those of HFEngine.
    """

    def __init__(
        self, tokenizer: str, unreadable: float = 0.1, refused: float = 0.2, **arguments: object
    ) -> None:
        super().__init__(**arguments)  # type: ignore[arg-type]
        self._tokenizer = AutoTokenizer.from_pretrained(tokenizer)
        self._shares = unreadable, refused

    def generate(
        self, prompts: Sequence[Sequence[int]], params: SamplingParams, seeds: Sequence[int]
    ) -> list[Generation | EngineFailure]:
        return [self._reply(prompt, params, seed) for prompt, seed in zip(prompts, seeds, strict=True)]

    def _reply(self, prompt: Sequence[int], params: SamplingParams, seed: int) -> Generation:
        text = self._tokenizer.decode(prompt)
        rng = random.Random(seed if params.temperature > 0 else text)
        share, (unreadable, refused) = rng.random(), self._shares
        if share < unreadable:
            reply = "I do not know."
        else:
            lines = text.rpartition(HEADER)[2].partition("<|")[0].split("\n")
            listed = [line.lstrip(BULLETS) for line in lines]
            command = rng.choice(REFUSED if share < unreadable + refused else listed)
            reply = f"Thought: {rng.choice(THOUGHTS)}\nAction: {command}"
        ids = [*self._tokenizer.encode(reply), self._tokenizer.eos_token_id][: params.max_new_tokens]
        return Generation(tuple(ids), (-0.5,) * len(ids), ids[-1] == self._tokenizer.eos_token_id)
