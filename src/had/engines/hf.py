"""An engine on transformers, for CPU and GPU: packed prefill, shared beginnings once, batched decoding.

Dimension legend: N packed tokens or rows, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import torch
from torch import Tensor
from transformers import AutoModelForCausalLM, PreTrainedModel

from had.engines.base import (
    EngineFailure,
    Generation,
    ModelSource,
    SamplingParams,
    check_scorable,
    refusals,
)
from had.engines.kv_cache import DecodePlan, KVRows, Plan, PrefillPlan, packed_attention_in
from had.engines.packing import Row, pack, split_batches
from had.engines.prefix import PrefixStore, encode
from had.engines.sampling import draw_uniforms, sample
from had.engines.usage import EngineUsage, timed
from had.records import TopKScores

DTYPES = ("float32", "bfloat16", "float16", "float64")


class HFEngine:
    """Generates with and scores by any causal language model of transformers.

    The model belongs to the engine: training goes on elsewhere and hands over weights with `load_weights`.
    All layers must be attention layers, full or with a sliding window.

    Args:
        model: the model, a folder with its configuration and safetensors weights, or what loads it.
        eos_ids: ids that end a reply.
        max_context_tokens: limit of prompt and reply together; None takes the model's own.
        device: where the model runs, e.g. `cpu` or `cuda`.
        dtype: type of weights and cache, e.g. `float32` or `bfloat16`.
        max_batch_tokens: cache slots (rows times longest row) that are worked on at once.
        max_prefill_tokens: tokens of one prefill forward; when scoring, logits of up to that many positions
            exist at once. Small forwards stay inside a CPU's caches; a GPU wants larger ones.
        prefix_cache_tokens: cache slots that are kept for prompts of later calls that begin alike (the next
            turn of an episode); 0 keeps none. A batch that is larger than this is not kept.

    Raises:
        FileNotFoundError: the model folder does not exist.
        ValueError: a limit is not positive, the type is unknown, there is no end-of-turn id, or the model has
            layers that are not attention.
    """

    def __init__(
        self,
        model: PreTrainedModel | ModelSource | str | Path,
        eos_ids: Sequence[int],
        max_context_tokens: int | None = None,
        device: str = "cpu",
        dtype: str = "float32",
        max_batch_tokens: int = 65536,
        max_prefill_tokens: int = 2048,
        prefix_cache_tokens: int = 131072,
    ) -> None:
        if not eos_ids:
            raise ValueError(
                "eos_ids: expected at least one end-of-turn id, got none; every reply would run to its limit"
            )
        for name, value in (
            ("max_batch_tokens", max_batch_tokens),
            ("max_prefill_tokens", max_prefill_tokens),
        ):
            if value < 1:
                raise ValueError(f"{name}: expected >= 1, got {value}")
        if dtype not in DTYPES:
            raise ValueError(f"dtype: expected one of {', '.join(DTYPES)}, got {dtype!r}")
        loaded = _loaded(model)
        _check_layers(loaded)
        self._model = loaded.to(device=device, dtype=getattr(torch, dtype)).eval()  # type: ignore[call-arg]
        self._device = torch.device(device)
        self._eos_ids = frozenset(eos_ids)
        self._max_context_tokens = (
            max_context_tokens or loaded.config.get_text_config().max_position_embeddings
        )
        self._max_batch_tokens = max_batch_tokens
        self._max_prefill_tokens = max_prefill_tokens
        self._prefixes = PrefixStore(prefix_cache_tokens)
        self._version = 0
        self.usage = EngineUsage()

    @property
    def max_context_tokens(self) -> int:
        return self._max_context_tokens

    @property
    def version(self) -> int:
        return self._version

    @timed
    @torch.inference_mode()
    def generate(
        self, prompts: Sequence[Sequence[int]], params: SamplingParams, seeds: Sequence[int]
    ) -> list[Generation | EngineFailure]:
        refused = refusals(prompts, seeds, params.max_new_tokens, self._max_context_tokens)
        answers: dict[int, Generation | EngineFailure] = {
            index: failure for index, failure in enumerate(refused) if failure is not None
        }
        rows = [
            Row(index, tuple(prompt), encode(prompt), len(prompt) - 1)
            for index, prompt in enumerate(prompts)
            if refused[index] is None
        ]
        with packed_attention_in(self._model.config):
            for batch in split_batches(rows, params.max_new_tokens, self._max_batch_tokens):
                answers |= self._generate_batch(batch, params, [seeds[row.request] for row in batch])
        return [answers[index] for index in range(len(prompts))]

    @timed
    @torch.inference_mode()
    def score(
        self, prompts: Sequence[Sequence[int]], responses: Sequence[Sequence[int]], top_k: int
    ) -> list[TopKScores]:
        vocab_size = self._model.config.get_text_config().vocab_size
        if not 1 <= top_k <= vocab_size:
            raise ValueError(f"top_k: expected 1 to {vocab_size} (the vocabulary), got {top_k}")
        scores = [TopKScores((), ()) for _ in prompts]
        for request, logits_NV in self._response_logits(prompts, responses):
            best = torch.log_softmax(logits_NV, dim=-1).topk(top_k)
            scores[request] = TopKScores(
                tuple(map(tuple, best.indices.tolist())), tuple(map(tuple, best.values.tolist()))
            )
        return scores

    @timed
    @torch.inference_mode()
    def logprobs(
        self, prompts: Sequence[Sequence[int]], responses: Sequence[Sequence[int]]
    ) -> list[tuple[float, ...]]:
        logprobs: list[tuple[float, ...]] = [() for _ in prompts]
        for request, logits_NV in self._response_logits(prompts, responses):
            targets_N1 = torch.tensor(responses[request], device=self._device)[:, None]
            logprobs_NV = torch.log_softmax(logits_NV, dim=-1)
            logprobs[request] = tuple(logprobs_NV.gather(1, targets_N1).squeeze(1).tolist())
        return logprobs

    @torch.no_grad()
    def load_weights(self, version: int, state_dict: Mapping[str, Tensor]) -> None:
        """Copy new weights into the model.

        Raises:
            ValueError: a name is missing or unknown, or a shape differs; the old weights stay in use.
        """
        own = self._model.state_dict()
        present = {own[name].data_ptr() for name in state_dict if name in own}
        # a name may be absent when its tensor is tied to a present one
        missing = [name for name in own if name not in state_dict and own[name].data_ptr() not in present]
        unknown = [name for name in state_dict if name not in own]
        shapes = [
            f"{name}: expected {tuple(own[name].shape)}, got {tuple(value.shape)}"
            for name, value in state_dict.items()
            if name in own and own[name].shape != value.shape
        ]
        if missing or unknown or shapes:
            raise ValueError(
                f"load_weights({version}): expected the weights of {type(self._model).__name__}; missing: "
                f"{missing[:5]}, unknown: {unknown[:5]}, other shapes: {shapes[:5]}. Send "
                "`model.state_dict()` of the same architecture, gathered and without a wrapper's prefix."
            )
        for name, value in state_dict.items():
            own[name].copy_(value)
        self._prefixes.clear()
        self._version = version

    def _prefill(self, batch: list[Row], rows: KVRows) -> Iterator[tuple[int, Tensor]]:
        """Fill the cache; yields the index of each row and its [N, V] float32 logits where wanted."""
        for packed in pack(batch, rows, self._prefixes, self._max_prefill_tokens):
            kept = torch.tensor(packed.kept, device=self._device)
            logits_NV = self._forward(packed.ids, packed.positions, PrefillPlan(rows, packed.segments), kept)
            for segment, row_logits in zip(packed.segments, logits_NV.split(packed.num_kept), strict=True):
                self.usage.note_read(segment.stop, segment.start)
                yield segment.row, row_logits

    def _forward(
        self, ids: Sequence[int], positions: Sequence[int], plan: Plan, kept: Tensor | int = 0
    ) -> Tensor:
        """Float32 logits of the kept ones of the packed tokens; 0 keeps all."""
        output = self._model(
            input_ids=torch.tensor([ids], device=self._device),
            position_ids=torch.tensor([positions], device=self._device),
            use_cache=False,
            logits_to_keep=kept,
            plan=plan,
        )
        return output.logits[0].float()

    def _generate_batch(
        self, batch: list[Row], params: SamplingParams, seeds: list[int]
    ) -> dict[int, Generation]:
        rows = KVRows(len(batch), max(len(row.ids) for row in batch) + params.max_new_tokens)
        prefilled = dict(self._prefill(batch, rows))
        logits_NV = torch.cat([prefilled[index] for index in range(len(batch))])
        uniforms_NM = draw_uniforms(seeds, params.max_new_tokens).to(self._device)
        ids: list[list[int]] = [[] for _ in batch]
        logprobs: list[list[float]] = [[] for _ in batch]
        active = list(range(len(batch)))
        for step in range(params.max_new_tokens):
            ids_N, logprobs_N = sample(logits_NV, params.temperature, uniforms_NM[active, step])
            for index, new_id, logprob in zip(active, ids_N.tolist(), logprobs_N.tolist(), strict=True):
                ids[index].append(new_id)
                logprobs[index].append(logprob)
            active = [index for index in active if ids[index][-1] not in self._eos_ids]
            if not active or step + 1 == params.max_new_tokens:
                break
            positions = [len(batch[index].ids) + step for index in active]
            plan = DecodePlan(rows, active, positions, self._device)
            logits_NV = self._forward([ids[index][-1] for index in active], positions, plan)
        # the last id of a reply was never fed to the model: it has no keys and values
        self._prefixes.add(rows, (row.tokens + encode(new[:-1]) for row, new in zip(batch, ids, strict=True)))
        generated = {
            row.request: Generation(tuple(ids[i]), tuple(logprobs[i]), ids[i][-1] in self._eos_ids)
            for i, row in enumerate(batch)
        }
        self.usage.note_generated(list(generated.values()))
        return generated

    def _response_logits(
        self, prompts: Sequence[Sequence[int]], responses: Sequence[Sequence[int]]
    ) -> Iterator[tuple[int, Tensor]]:
        """For each non-empty response the [N, V] logits that predict its N tokens, in any order."""
        check_scorable(prompts, responses, self._max_context_tokens)
        rows = []
        for index, (prompt, response) in enumerate(zip(prompts, responses, strict=True)):
            if response:
                self.usage.tokens_scored += len(response)
                ids = (*prompt, *response[:-1])
                rows.append(Row(index, ids, encode(ids), len(prompt) - 1))
        with packed_attention_in(self._model.config):
            for batch in split_batches(rows, 0, self._max_batch_tokens):
                cache = KVRows(len(batch), max(len(row.ids) for row in batch))
                for index, logits_NV in self._prefill(batch, cache):
                    yield batch[index].request, logits_NV


def _loaded(model: PreTrainedModel | ModelSource | str | Path) -> PreTrainedModel:
    if isinstance(model, PreTrainedModel):
        return model
    return _load(Path(model)) if isinstance(model, str | Path) else model.model()


def _load(folder: Path) -> PreTrainedModel:
    if not (folder / "config.json").is_file():
        raise FileNotFoundError(
            f"model: expected a folder with config.json and safetensors weights, got {folder.absolute()}, "
            "which has no config.json; give another folder or a model object"
        )
    return AutoModelForCausalLM.from_pretrained(folder, use_safetensors=True, dtype="auto")


def _check_layers(model: PreTrainedModel) -> None:
    """Packed rows must not see each other, which only attention layers can be told."""
    kinds = set(getattr(model.config.get_text_config(), "layer_types", None) or ["full_attention"])
    other = kinds - {"full_attention", "sliding_attention"}
    if other or not type(model)._supports_attention_backend:
        raise ValueError(
            f"model: expected attention layers only (full or sliding), got {type(model).__name__} with "
            f"{', '.join(sorted(other)) or 'an attention of its own'}; use another engine for it"
        )
