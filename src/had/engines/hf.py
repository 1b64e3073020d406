"""An engine on transformers, for CPU and GPU: packed prefill, shared beginnings computed once, batched decoding.

Dimension legend: N packed tokens or rows, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor
from transformers import AutoModelForCausalLM, PreTrainedModel

from had.engines.base import EngineFailure, Generation, SamplingParams
from had.engines.kv_cache import DecodePlan, KVRows, Plan, PrefillPlan, Segment, packed_attention_in
from had.engines.prefix import PrefixStore, encode, num_common
from had.engines.sampling import draw_uniforms, sample
from had.records import TopKScores

# Copying a shorter prefix and masking it costs more than computing it.
MIN_SHARED_TOKENS = 16


@dataclass(frozen=True)
class _Row:
    """One sequence to compute: logits are wanted from position `keep_from` to the end."""

    request: int
    ids: tuple[int, ...]
    tokens: bytes
    keep_from: int


class HFEngine:
    """Generates with and scores by any causal language model of transformers.

    The model belongs to the engine: training goes on elsewhere and hands over its weights with `load_weights`.

    Args:
        model: the model, or a folder with its configuration and safetensors weights.
        eos_ids: ids that end a reply.
        max_context_tokens: limit of prompt and reply together; None takes the model's own.
        device: where the model runs, e.g. `cpu` or `cuda`.
        dtype: type of weights and cache, e.g. `float32` or `bfloat16`.
        max_batch_tokens: cache slots (rows times longest row) that are worked on at once.
        max_prefill_tokens: tokens of one prefill forward; small batches stay inside a CPU's caches.
        prefix_cache_tokens: cache slots that are kept for prompts of later calls that begin alike (the next turn of an
            episode); 0 keeps none. Memory: up to `max_batch_tokens + prefix_cache_tokens` slots.

    Raises:
        FileNotFoundError: the model folder does not exist.
        ValueError: a limit is not positive, or there is no end-of-turn id.
    """

    def __init__(
        self,
        model: PreTrainedModel | str | Path,
        eos_ids: Sequence[int],
        max_context_tokens: int | None = None,
        device: str = "cpu",
        dtype: str = "float32",
        max_batch_tokens: int = 65536,
        max_prefill_tokens: int = 2048,
        prefix_cache_tokens: int = 65536,
    ) -> None:
        if not eos_ids:
            raise ValueError("eos_ids: expected at least one end-of-turn id, got none; every reply would run to its limit")
        for name, value in (("max_batch_tokens", max_batch_tokens), ("max_prefill_tokens", max_prefill_tokens)):
            if value < 1:
                raise ValueError(f"{name}: expected >= 1, got {value}")
        if not isinstance(model, PreTrainedModel):
            model = _load(Path(model))
        self._model = model.to(device=device, dtype=getattr(torch, dtype)).eval()
        self._device = torch.device(device)
        self._eos_ids = torch.tensor(sorted(set(eos_ids)), device=device)
        self._max_context_tokens = max_context_tokens or model.config.get_text_config().max_position_embeddings
        self._max_batch_tokens = max_batch_tokens
        self._max_prefill_tokens = max_prefill_tokens
        self._prefixes = PrefixStore(prefix_cache_tokens)
        self._version = 0

    @property
    def max_context_tokens(self) -> int:
        return self._max_context_tokens

    @property
    def version(self) -> int:
        return self._version

    @torch.inference_mode()
    def generate(
        self, prompts: Sequence[Sequence[int]], params: SamplingParams, seeds: Sequence[int]
    ) -> list[Generation | EngineFailure]:
        if len(prompts) != len(seeds):
            raise ValueError(f"seeds: expected one per prompt ({len(prompts)}), got {len(seeds)}")
        answers: dict[int, Generation | EngineFailure] = {}
        rows = []
        for index, prompt in enumerate(prompts):
            failure = self._refuse(len(prompt), params.max_new_tokens)
            if failure is not None:
                answers[index] = failure
            else:
                rows.append(_Row(index, tuple(prompt), encode(prompt), len(prompt) - 1))
        with packed_attention_in(self._model.config):
            for batch in self._batches(rows, params.max_new_tokens):
                answers |= self._generate_batch(batch, params, [seeds[row.request] for row in batch])
        return [answers[index] for index in range(len(prompts))]

    @torch.inference_mode()
    def score(self, prompts: Sequence[Sequence[int]], responses: Sequence[Sequence[int]], top_k: int) -> list[TopKScores]:
        scores = [TopKScores((), ()) for _ in prompts]
        for row, logits_NV in self._response_logits(prompts, responses):
            best = torch.log_softmax(logits_NV, dim=-1).topk(top_k)
            scores[row.request] = TopKScores(
                tuple(map(tuple, best.indices.tolist())), tuple(map(tuple, best.values.tolist()))
            )
        return scores

    @torch.inference_mode()
    def logprobs(self, prompts: Sequence[Sequence[int]], responses: Sequence[Sequence[int]]) -> list[tuple[float, ...]]:
        logprobs: list[tuple[float, ...]] = [() for _ in prompts]
        for row, logits_NV in self._response_logits(prompts, responses):
            targets_N1 = torch.tensor(responses[row.request], device=self._device)[:, None]
            logprobs_NV = torch.log_softmax(logits_NV, dim=-1)
            logprobs[row.request] = tuple(logprobs_NV.gather(1, targets_N1).squeeze(1).tolist())
        return logprobs

    @torch.no_grad()
    def load_weights(self, version: int, state_dict: Mapping[str, Tensor]) -> None:
        """Copy new weights into the model.

        Raises:
            ValueError: a name is missing or unknown, or a shape differs; the old weights stay in use.
        """
        own = self._model.state_dict()
        present = {own[name].data_ptr() for name in state_dict if name in own}
        missing = [name for name in own if name not in state_dict and own[name].data_ptr() not in present]  # tied: fine
        unknown = [name for name in state_dict if name not in own]
        shapes = [
            f"{name}: expected {tuple(own[name].shape)}, got {tuple(value.shape)}"
            for name, value in state_dict.items()
            if name in own and own[name].shape != value.shape
        ]
        if missing or unknown or shapes:
            raise ValueError(
                f"load_weights({version}): expected the weights of {type(self._model).__name__}; missing: {missing[:5]}, "
                f"unknown: {unknown[:5]}, other shapes: {shapes[:5]}. Send `model.state_dict()` of the same architecture, "
                "gathered and without a wrapper's prefix."
            )
        for name, value in state_dict.items():
            own[name].copy_(value)
        self._prefixes.clear()
        self._version = version

    def _refuse(self, num_prompt: int, num_new: int) -> EngineFailure | None:
        """Why a request cannot be answered, None when it can."""
        if num_prompt == 0:
            return EngineFailure("empty prompt: expected at least one token id")
        if num_prompt + num_new > self._max_context_tokens:
            return EngineFailure(
                f"prompt of {num_prompt} tokens and {num_new} new tokens exceed the context of "
                f"{self._max_context_tokens} tokens; shorten the history or lower max_new_tokens"
            )
        return None

    def _batches(self, rows: list[_Row], num_new: int) -> Iterator[list[_Row]]:
        """Split into batches that fit the token budget; prompts that begin alike come one after the other."""
        batch: list[_Row] = []
        longest = 0
        for row in sorted(rows, key=lambda row: row.tokens):
            longest = max(longest, len(row.ids) + num_new)
            if batch and longest * (len(batch) + 1) > self._max_batch_tokens:
                yield batch
                batch, longest = [], len(row.ids) + num_new
            batch.append(row)
        if batch:
            yield batch

    def _segments(self, batch: list[_Row], rows: KVRows) -> Iterator[Segment]:
        """What is left to compute of each row, after the longest beginning known from earlier rows or calls."""
        for index, row in enumerate(batch):
            shared, source, source_row = self._prefixes.find(row.tokens)
            if index and (length := num_common(batch[index - 1].tokens, row.tokens)) >= shared:
                shared, source, source_row = length, rows, index - 1
            shared = min(shared, row.keep_from)
            if shared < MIN_SHARED_TOKENS:
                shared, source = 0, None
            yield Segment(index, shared, len(row.ids), source, source_row)

    def _prefill(self, batch: list[_Row], rows: KVRows) -> Iterator[tuple[_Row, Tensor]]:
        """Fill the cache; yields each row with its [N, V] float32 logits at the wanted positions."""
        chunk: list[Segment] = []
        num_tokens = 0
        for segment in self._segments(batch, rows):
            if chunk and num_tokens + segment.stop - segment.start > self._max_prefill_tokens:
                yield from self._prefill_chunk(batch, rows, chunk)
                chunk, num_tokens = [], 0
            chunk.append(segment)
            num_tokens += segment.stop - segment.start
        yield from self._prefill_chunk(batch, rows, chunk)

    def _prefill_chunk(self, batch: list[_Row], rows: KVRows, chunk: list[Segment]) -> Iterator[tuple[_Row, Tensor]]:
        tokens: list[int] = []
        positions: list[int] = []
        kept: list[int] = []
        num_kept = []
        for segment in chunk:
            row = batch[segment.row]
            first = len(tokens) + row.keep_from - segment.start
            tokens.extend(row.ids[segment.start : segment.stop])
            positions.extend(range(segment.start, segment.stop))
            kept.extend(range(first, len(tokens)))
            num_kept.append(len(tokens) - first)
        logits_NV = self._forward(
            torch.tensor(tokens, device=self._device),
            torch.tensor(positions, device=self._device),
            PrefillPlan(rows, chunk),
            torch.tensor(kept, device=self._device),
        )
        for segment, logits in zip(chunk, logits_NV.split(num_kept), strict=True):
            yield batch[segment.row], logits

    def _forward(self, tokens_N: Tensor, positions_N: Tensor, plan: Plan, kept: Tensor | int = 0) -> Tensor:
        """Float32 logits of the kept packed tokens; 0 keeps all."""
        output = self._model(
            input_ids=tokens_N[None], position_ids=positions_N[None], use_cache=False, logits_to_keep=kept, plan=plan
        )
        return output.logits[0].float()

    def _generate_batch(self, batch: list[_Row], params: SamplingParams, seeds: list[int]) -> dict[int, Generation]:
        rows = KVRows(len(batch), max(len(row.ids) for row in batch) + params.max_new_tokens)
        logits_NV = torch.cat([logits for _, logits in self._prefill(batch, rows)])
        uniforms = draw_uniforms(seeds, params.max_new_tokens).to(self._device)
        lengths_N = torch.tensor([len(row.ids) for row in batch], device=self._device)
        slots = list(range(len(batch)))  # slots[i]: which request of the batch lies in cache row i; active ones first
        ids: list[list[int]] = [[] for _ in batch]
        logprobs: list[list[float]] = [[] for _ in batch]
        is_complete = [False] * len(batch)
        num_active = len(batch)
        for step in range(params.max_new_tokens):
            order = torch.tensor(slots[:num_active], device=self._device)
            ids_N, logprobs_N = sample(logits_NV, params.temperature, uniforms[order, step])
            ended = torch.isin(ids_N, self._eos_ids).tolist()
            for slot, new_id, logprob in zip(slots, ids_N.tolist(), logprobs_N.tolist(), strict=False):
                ids[slot].append(new_id)
                logprobs[slot].append(logprob)
            for at in reversed(range(num_active)):
                if ended[at]:
                    is_complete[slots[at]] = True
                    num_active -= 1
                    if at != num_active:
                        rows.swap(at, num_active, int(lengths_N.max()))
                        for tensor in (ids_N, lengths_N):
                            tensor[[at, num_active]] = tensor[[num_active, at]]
                        slots[at], slots[num_active] = slots[num_active], slots[at]
            if num_active == 0 or step + 1 == params.max_new_tokens:
                break
            positions_N = lengths_N[:num_active]
            logits_NV = self._forward(ids_N[:num_active], positions_N, DecodePlan(rows, positions_N))
            lengths_N[:num_active] += 1
        known = [batch[slot].tokens + encode(ids[slot][: int(lengths_N[at]) - len(batch[slot].ids)]) for at, slot in enumerate(slots)]
        self._prefixes.add(rows, known)
        return {
            row.request: Generation(tuple(ids[i]), tuple(logprobs[i]), is_complete[i]) for i, row in enumerate(batch)
        }

    def _response_logits(
        self, prompts: Sequence[Sequence[int]], responses: Sequence[Sequence[int]]
    ) -> Iterator[tuple[_Row, Tensor]]:
        """For each non-empty response the [N, V] logits that predict its N tokens, in any order."""
        if len(prompts) != len(responses):
            raise ValueError(f"responses: expected one per prompt ({len(prompts)}), got {len(responses)}")
        rows = []
        for index, (prompt, response) in enumerate(zip(prompts, responses, strict=True)):
            failure = self._refuse(len(prompt), len(response))
            if failure is not None:
                raise ValueError(f"request {index}: {failure}")
            if response:
                ids = (*prompt, *response[:-1])
                rows.append(_Row(index, ids, encode(ids), len(prompt) - 1))
        with packed_attention_in(self._model.config):
            for batch in self._batches(rows, 0):
                yield from self._prefill(batch, KVRows(len(batch), max(len(row.ids) for row in batch)))


def _load(folder: Path) -> PreTrainedModel:
    if not (folder / "config.json").is_file():
        raise FileNotFoundError(
            f"model: expected a folder with config.json and safetensors weights, got {folder.absolute()}, which has no "
            "config.json; give another folder or a model object"
        )
    return AutoModelForCausalLM.from_pretrained(folder, use_safetensors=True, dtype="auto")
