"""The training forward on token trees against separate sequences."""

import pytest
import torch
from torch import Tensor

from had.batch import TokenBatch
from had.models.forward import scored_logits
from had.models.tiny import make_qwen3

VOCAB = 53
PREFIX = torch.tensor([5, 6, 7, 8, 9, 10, 11])
BRANCHES = (torch.tensor([20, 21, 22]), torch.tensor([30, 31]))


def tree() -> TokenBatch:
    """Row 0: [prefix | branch | branch]; row 1: the second branch's sequence alone, padded."""
    lengths = [len(PREFIX), *map(len, BRANCHES)]
    alone = torch.cat([PREFIX, BRANCHES[1]])
    tokens = torch.zeros(2, sum(lengths), dtype=torch.long)
    tokens[0] = torch.cat([PREFIX, *BRANCHES])
    tokens[1, : len(alone)] = alone
    positions = torch.zeros_like(tokens)
    positions[0] = torch.cat([torch.arange(7), torch.arange(7, 10), torch.arange(7, 9)])
    positions[1, : len(alone)] = torch.arange(len(alone))
    nodes = torch.full_like(tokens, -1)
    nodes[0] = torch.repeat_interleave(torch.arange(3), torch.tensor(lengths))
    nodes[1, : len(alone)] = 0
    parents = torch.tensor([[-1, 0, 0], [-1, -1, -1]])
    return TokenBatch(tokens, positions, nodes, parents, spans={}, counts={})


ROWS = torch.tensor([0, 0, 0, 0, 0, 1, 1])
SOURCES = torch.tensor(
    [6, 7, 8, 6, 10, 6, 7]
)  # the first token of a branch is predicted by the end of the prefix
TARGETS = torch.cat([*BRANCHES, BRANCHES[1]])
WEIGHTS = torch.tensor([0.3, 1.0, -0.5, 0.7, 1.1, 0.2, -0.4])


def separate_logprobs(model: torch.nn.Module) -> Tensor:
    """The same log-probabilities from one plain forward per sequence."""
    logprobs = []
    for branch in (*BRANCHES, BRANCHES[1]):
        logits = model(torch.cat([PREFIX, branch])[None], use_cache=False).logits[0]
        predicted = torch.log_softmax(logits[len(PREFIX) - 1 : -1], -1)
        logprobs.append(predicted[torch.arange(len(branch)), branch])
    return torch.cat(logprobs)


@pytest.mark.parametrize("is_tied", [True, False])
def test_a_tree_gives_the_logprobs_and_gradients_of_separate_sequences(is_tied: bool) -> None:
    model = make_qwen3(VOCAB, hidden=32, layers=2, heads=4, kv_heads=2, head_dim=8, intermediate=48,
                       tie_embeddings=is_tied)  # fmt: skip
    with torch.no_grad():
        model.model.embed_tokens.weight.mul_(10)
    batch = tree()
    logits = scored_logits(model, batch.tokens_BT, batch.positions_BT, batch.attention_mask(), ROWS, SOURCES)
    assert logits.shape == (7, VOCAB) and logits.dtype is torch.float32
    logprobs = torch.log_softmax(logits, -1)[torch.arange(7), TARGETS]
    expected = separate_logprobs(model)
    torch.testing.assert_close(logprobs, expected, atol=1e-5, rtol=1e-5)

    parameters = list(model.parameters())
    gradients = torch.autograd.grad((logprobs * WEIGHTS).sum(), parameters)
    expected_gradients = torch.autograd.grad((expected * WEIGHTS).sum(), parameters)
    for gradient, expected_gradient in zip(gradients, expected_gradients, strict=True):
        torch.testing.assert_close(gradient, expected_gradient, atol=1e-4, rtol=1e-4)


def test_the_output_layer_sees_scored_positions_only() -> None:
    model = make_qwen3(VOCAB, hidden=32, layers=1, heads=4, kv_heads=2, head_dim=8, intermediate=48)
    seen = []
    model.lm_head.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0].shape))
    batch = tree()
    scored_logits(model, batch.tokens_BT, batch.positions_BT, batch.attention_mask(), ROWS, SOURCES)
    assert seen == [(7, 32)]


def test_no_scored_position_gives_no_logits() -> None:
    model = make_qwen3(VOCAB, hidden=32, layers=1, heads=4, kv_heads=2, head_dim=8, intermediate=48)
    batch = tree()
    nothing = torch.zeros(0, dtype=torch.long)
    logits = scored_logits(
        model, batch.tokens_BT, batch.positions_BT, batch.attention_mask(), nothing, nothing
    )
    assert logits.shape == (0, VOCAB) and logits.requires_grad
