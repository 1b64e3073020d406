"""The training forward of Gemma-4-shaped models: sliding windows, shared keys, per-layer inputs."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from transformers import AutoModelForCausalLM, Gemma4TextConfig, Gemma4UnifiedTextConfig, PreTrainedModel

from had.batch import TokenBatch
from had.engines.base import Generation, SamplingParams
from had.engines.hf import HFEngine
from had.models.forward import scored_logits

VOCAB, WINDOW = 97, 6
PREFIX = torch.arange(3, 23)  # longer than the window
BRANCHES = (torch.arange(30, 38), torch.arange(50, 59))
SHAPE = {
    "vocab_size": VOCAB, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 4,
    "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 8, "global_head_dim": 16,
    "sliding_window": WINDOW, "layer_types": ["sliding_attention", "full_attention"] * 2,
    "pad_token_id": 0, "eos_token_id": 1, "bos_token_id": 2,
}  # fmt: skip


def tiny_model(kind: str) -> PreTrainedModel:
    if kind == "unified":  # 12B
        config = Gemma4UnifiedTextConfig(**SHAPE)
    else:  # E2B: the last layers read keys of earlier ones, and each layer has an embedding of its own
        extra = {
            "num_kv_shared_layers": 2,
            "hidden_size_per_layer_input": 8,
            "vocab_size_per_layer_input": VOCAB,
        }
        config = Gemma4TextConfig(**SHAPE, **extra)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = AutoModelForCausalLM.from_config(config, attn_implementation="sdpa")
        for parameter in model.parameters():  # large enough that a wrong mask shows
            parameter.data.normal_(std=0.3)
    return model.eval()


def tree() -> TokenBatch:
    """One row: the prefix and two branches."""
    lengths = [len(PREFIX), *map(len, BRANCHES)]
    starts = [0, len(PREFIX), len(PREFIX)]
    positions = torch.cat([torch.arange(s, s + n) for s, n in zip(starts, lengths, strict=True)])
    nodes = torch.repeat_interleave(torch.arange(3), torch.tensor(lengths))
    tokens = torch.cat([PREFIX, *BRANCHES])
    return TokenBatch(tokens[None], positions[None], nodes[None], torch.tensor([[-1, 0, 0]]), {}, {})


def tree_logprobs(model: PreTrainedModel) -> Tensor:
    batch, last = tree(), len(PREFIX) - 1
    first, second = len(PREFIX), len(PREFIX) + len(BRANCHES[0])
    sources = [last, *range(first, second - 1), last, *range(second, second + len(BRANCHES[1]) - 1)]
    logits = scored_logits(
        model, batch.tokens_BT, batch.positions_BT, batch.attention_mask(),
        torch.zeros(len(sources), dtype=torch.long), torch.tensor(sources),
    )  # fmt: skip
    return torch.log_softmax(logits, -1)[torch.arange(len(sources)), torch.cat(BRANCHES)]


def separate_logprobs(model: PreTrainedModel) -> Tensor:
    logprobs = []
    for branch in BRANCHES:
        logits = model(torch.cat([PREFIX, branch])[None], use_cache=False).logits[0]
        predicted = torch.log_softmax(logits[len(PREFIX) - 1 : -1].float(), -1)
        logprobs.append(predicted[torch.arange(len(branch)), branch])
    return torch.cat(logprobs)


def gradients(model: PreTrainedModel, logprobs: Tensor) -> Tensor:
    model.zero_grad()
    (logprobs * torch.linspace(-1, 1, len(logprobs))).sum().backward()
    return torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])


@pytest.mark.parametrize("kind", ["edge", "unified"])
def test_a_tree_gives_the_logprobs_and_gradients_of_separate_sequences(kind: str):
    model = tiny_model(kind)
    shared, separate = tree_logprobs(model), separate_logprobs(model)
    torch.testing.assert_close(shared, separate, atol=1e-4, rtol=1e-4)
    expected = gradients(model, separate)
    found = gradients(model, shared)
    torch.testing.assert_close(found, expected, atol=1e-4 * float(expected.abs().max()), rtol=1e-3)


@pytest.mark.parametrize("kind", ["edge", "unified"])
def test_the_window_matters_here(kind: str):
    model = tiny_model(kind)
    windowed = tree_logprobs(model).detach()
    model.config.get_text_config().sliding_window = 1000
    assert (tree_logprobs(model) - windowed).abs().max() > 0.01


@pytest.mark.parametrize("kind", ["edge", "unified"])
def test_the_engine_samples_what_the_training_forward_scores(kind: str):
    model = tiny_model(kind)
    (reply,) = HFEngine(model, [1]).generate([PREFIX.tolist()], SamplingParams(1.0, 12), [3])
    assert isinstance(reply, Generation)
    ids = torch.tensor([[*PREFIX.tolist(), *reply.ids]])
    positions, num = torch.arange(ids.shape[1])[None], len(reply.ids)
    causal = torch.ones(1, 1, ids.shape[1], ids.shape[1], dtype=torch.bool).tril()
    sources = torch.arange(len(PREFIX) - 1, ids.shape[1] - 1)
    logits = scored_logits(model, ids, positions, causal, torch.zeros(num, dtype=torch.long), sources)
    scored = torch.log_softmax(logits, -1)[torch.arange(num), ids[0, len(PREFIX) :]]
    torch.testing.assert_close(scored.detach(), torch.tensor(reply.logprobs), atol=1e-4, rtol=1e-4)
