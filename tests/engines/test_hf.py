"""The transformers engine against plain forwards, one sequence at a time."""

import random
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from transformers import (
    Gemma3ForCausalLM,
    Gemma3TextConfig,
    LlamaConfig,
    LlamaForCausalLM,
    MambaConfig,
    MambaForCausalLM,
    PreTrainedModel,
)

from had.engines.base import EngineFailure, Generation, SamplingParams
from had.engines.hf import HFEngine
from had.models.tiny import make_qwen3

VOCAB = 101
EOS = 1


def tiny_model(seed: int = 0) -> PreTrainedModel:
    model = make_qwen3(
        VOCAB,
        hidden=32,
        layers=2,
        heads=4,
        kv_heads=2,
        head_dim=8,
        intermediate=48,
        max_positions=256,
        seed=seed,
    )
    with torch.no_grad():
        model.model.embed_tokens.weight.mul_(5)  # far from uniform, so that mistakes show
    return model


def llama() -> PreTrainedModel:
    torch.manual_seed(0)
    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=VOCAB, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
            num_key_value_heads=4, intermediate_size=48, max_position_embeddings=256, initializer_range=0.3,
        )
    )  # fmt: skip


def gemma3_with_sliding_window() -> PreTrainedModel:
    torch.manual_seed(0)
    return Gemma3ForCausalLM(
        Gemma3TextConfig(
            vocab_size=VOCAB, hidden_size=32, num_hidden_layers=3, num_attention_heads=4,
            num_key_value_heads=1, head_dim=8, intermediate_size=48, max_position_embeddings=256,
            sliding_window=9, initializer_range=0.3,
            layer_types=["sliding_attention", "full_attention", "sliding_attention"],
        )
    )  # fmt: skip


def random_prompts(num: int, seed: int = 0, shared: int = 0) -> list[list[int]]:
    """Prompts of 1 to 60 own tokens; every other one begins with the same `shared` tokens."""
    rng = random.Random(seed)
    draw = lambda n: [rng.randrange(2, VOCAB) for _ in range(n)]  # noqa: E731
    beginning = draw(shared)
    return [(beginning if i % 2 else []) + draw(rng.randrange(1, 61)) for i in range(num)]


@torch.inference_mode()
def reference_logprobs(model: PreTrainedModel, prompt: list[int], response: tuple[int, ...]) -> torch.Tensor:
    """[response, V] log-probabilities from one plain forward of one sequence."""
    logits = model(torch.tensor([[*prompt, *response]]), use_cache=False).logits[0]
    return torch.log_softmax(logits[len(prompt) - 1 : -1].float(), -1)


def generations(
    engine: HFEngine, prompts: list[list[int]], params: SamplingParams, seeds: list[int]
) -> list[Generation]:
    answers = engine.generate(prompts, params, seeds)
    assert all(isinstance(answer, Generation) for answer in answers), answers
    return answers  # type: ignore[return-value]


def assert_matches_plain_forward(model: PreTrainedModel, prompt: list[int], answer: Generation) -> None:
    expected = reference_logprobs(model, prompt, answer.ids)[range(len(answer.ids)), list(answer.ids)]
    torch.testing.assert_close(torch.tensor(answer.logprobs), expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("make", [tiny_model, llama, gemma3_with_sliding_window])
@pytest.mark.parametrize(
    "limits", [{}, {"max_prefill_tokens": 50, "max_batch_tokens": 400, "prefix_cache_tokens": 0}]
)
def test_logprobs_match_a_plain_forward(make: Callable[[], PreTrainedModel], limits: dict[str, int]) -> None:
    model = make()
    engine = HFEngine(model, [EOS], **limits)
    prompts = random_prompts(14, shared=40)
    prompts += [prompts[1], prompts[1] + [5, 6, 7]]
    for answer, prompt in zip(
        generations(engine, prompts, SamplingParams(1.0, 9), list(range(16))), prompts, strict=True
    ):
        assert_matches_plain_forward(model, prompt, answer)


def test_a_request_does_not_depend_on_its_neighbours() -> None:
    prompts = random_prompts(12, shared=40)
    seeds = [100 + i for i in range(12)]
    params = SamplingParams(1.0, 12)
    together = generations(HFEngine(tiny_model(), [EOS]), prompts, params, seeds)
    order = list(range(12))
    random.Random(1).shuffle(order)
    shuffled = generations(
        HFEngine(tiny_model(), [EOS]), [prompts[i] for i in order], params, [seeds[i] for i in order]
    )
    for i, prompt in enumerate(prompts):
        alone = generations(HFEngine(tiny_model(), [EOS]), [prompt], params, [seeds[i]])[0]
        for other in (together[i], shuffled[order.index(i)]):
            assert other.ids == alone.ids
            assert other.logprobs == pytest.approx(alone.logprobs, abs=1e-5)


def test_the_seed_decides() -> None:
    engine = HFEngine(tiny_model(), [EOS])
    prompt = random_prompts(1)[0]
    params = SamplingParams(1.0, 16)
    first, again, other = generations(engine, [prompt] * 3, params, [3, 3, 4])
    assert first.ids == again.ids
    assert first.logprobs == pytest.approx(again.logprobs, abs=1e-5)
    assert first.ids != other.ids
    assert generations(engine, [prompt], params, [3])[0].ids == first.ids


def test_temperature_zero_is_greedy() -> None:
    model = tiny_model()
    prompt = random_prompts(1)[0]
    answer = generations(HFEngine(model, [EOS]), [prompt], SamplingParams(0.0, 8), [0])[0]
    ids = list(prompt)
    for new_id in answer.ids:
        with torch.inference_mode():
            assert int(model(torch.tensor([ids])).logits[0, -1].argmax()) == new_id
        ids.append(new_id)


def count_tokens(model: PreTrainedModel) -> list[int]:
    """A list that gets the number of tokens of every forward of the model."""
    counts: list[int] = []
    model.get_input_embeddings().register_forward_hook(lambda _, inputs, __: counts.append(inputs[0].numel()))
    return counts


def test_ended_replies_leave_the_batch() -> None:
    model = tiny_model()
    num_tokens = count_tokens(model)
    prompts = random_prompts(20)
    engine = HFEngine(model, range(0, VOCAB, 6))  # a sixth of the vocabulary ends a reply
    answers = generations(engine, prompts, SamplingParams(1.0, 12), list(range(20)))
    lengths = [len(answer.ids) for answer in answers]
    assert len(set(lengths)) > 3
    assert num_tokens[1:] == [sum(n > step for n in lengths) for step in range(1, max(lengths))]
    for prompt, answer in zip(prompts, answers, strict=True):
        assert answer.is_complete == (answer.ids[-1] % 6 == 0)
        assert all(i % 6 for i in answer.ids[:-1])
        assert answer.is_complete or len(answer.ids) == 12
        assert_matches_plain_forward(model, prompt, answer)


def test_later_turns_reuse_earlier_ones_and_stay_exact() -> None:
    model = tiny_model()
    num_tokens = count_tokens(model)
    engine = HFEngine(model, range(0, VOCAB, 6))
    histories = [prompt + [9] * 20 for prompt in random_prompts(6)]
    for turn in range(4):
        prompts = [history + [30 + turn] * 5 for history in histories]  # the tail is not part of the history
        num_tokens.clear()
        answers = generations(engine, prompts, SamplingParams(1.0, 6), [turn] * 6)
        if turn:
            assert num_tokens[0] == 6 * (4 + 5)
        for prompt, answer in zip(prompts, answers, strict=True):
            assert_matches_plain_forward(model, prompt, answer)
        histories = [history + [40 + turn] * 4 for history in histories]


def test_requests_that_cannot_be_answered_fail_alone() -> None:
    engine = HFEngine(tiny_model(), [EOS], max_context_tokens=50)
    answers = engine.generate([[5] * 45, [5] * 46, [], [7]], SamplingParams(1.0, 5), [0, 1, 2, 3])
    assert [type(answer) for answer in answers] == [Generation, EngineFailure, EngineFailure, Generation]
    assert "46" in str(answers[1]) and "50" in str(answers[1])
    assert "empty" in str(answers[2])
    assert engine.generate([], SamplingParams(), []) == []


def test_score_and_logprobs_match_a_plain_forward() -> None:
    model = tiny_model()
    engine = HFEngine(model, [EOS], max_prefill_tokens=64, max_batch_tokens=300)
    prompts = random_prompts(9, shared=40)
    prompts.append(prompts[3])  # one prompt, two responses
    responses = random_prompts(10, seed=5)
    responses[4] = []
    scores = engine.score(prompts, responses, top_k=7)
    logprobs = engine.logprobs(prompts, responses)
    for prompt, response, score, logprob in zip(prompts, responses, scores, logprobs, strict=True):
        expected = reference_logprobs(model, prompt, tuple(response)) if response else torch.empty(0, VOCAB)
        assert len(logprob) == len(score.ids) == len(score.logprobs) == len(response)
        if response:
            chosen = expected[range(len(response)), response]
            torch.testing.assert_close(torch.tensor(logprob), chosen, atol=1e-5, rtol=1e-5)
            best = expected.topk(7)
            assert torch.equal(torch.tensor(score.ids), best.indices)
            torch.testing.assert_close(torch.tensor(score.logprobs), best.values, atol=1e-5, rtol=1e-5)


def test_score_of_a_generation_repeats_its_logprobs() -> None:
    engine = HFEngine(tiny_model(), [EOS])
    prompts = random_prompts(5)
    answers = generations(engine, prompts, SamplingParams(1.0, 10), list(range(5)))
    for answer, logprobs in zip(answers, engine.logprobs(prompts, [a.ids for a in answers]), strict=True):
        assert logprobs == pytest.approx(answer.logprobs, abs=1e-5)


def test_load_weights_replaces_weights_and_cached_prefixes() -> None:
    engine = HFEngine(tiny_model(seed=0), [EOS])
    other = tiny_model(seed=1)
    prompts = [[9] * 30 + prompt for prompt in random_prompts(4)]
    params = SamplingParams(1.0, 6)
    before = generations(engine, prompts, params, [0] * 4)
    engine.load_weights(3, other.state_dict())
    assert engine.version == 3
    after = generations(engine, prompts, params, [0] * 4)
    assert [a.ids for a in before] != [a.ids for a in after]
    for prompt, answer in zip(prompts, after, strict=True):
        assert_matches_plain_forward(other, prompt, answer)


def test_load_weights_takes_a_tied_name_as_present() -> None:
    engine = HFEngine(tiny_model(seed=0), [EOS])
    weights = tiny_model(seed=1).state_dict()
    del weights["lm_head.weight"]
    engine.load_weights(1, weights)
    assert engine.version == 1


def test_load_weights_refuses_wrong_state_dicts_and_keeps_the_old_weights() -> None:
    engine = HFEngine(tiny_model(seed=0), [EOS])
    prompt = random_prompts(1)
    before = generations(engine, prompt, SamplingParams(0.0, 6), [0])
    good = tiny_model(seed=1).state_dict()
    name = "model.norm.weight"
    for bad, message in (
        ({k: v for k, v in good.items() if k != name}, "missing.*model.norm.weight"),
        ({**good, "extra": torch.zeros(1)}, "unknown.*extra"),
        ({**good, name: torch.zeros(5)}, r"model.norm.weight: expected \(32,\), got \(5,\)"),
    ):
        with pytest.raises(ValueError, match=message):
            engine.load_weights(1, bad)
    assert engine.version == 0
    assert generations(engine, prompt, SamplingParams(0.0, 6), [0])[0].logprobs == pytest.approx(
        before[0].logprobs
    )


def test_the_model_keeps_its_own_attention() -> None:
    model = tiny_model()
    before = model.config._attn_implementation
    HFEngine(model, [EOS]).generate([[3, 4]], SamplingParams(1.0, 2), [0])
    assert model.config._attn_implementation == before


def test_bfloat16_stays_close() -> None:
    model = tiny_model()
    prompts = random_prompts(4)
    engine = HFEngine(tiny_model(), [EOS], dtype="bfloat16")
    for prompt, answer in zip(
        prompts, generations(engine, prompts, SamplingParams(1.0, 5), [0] * 4), strict=True
    ):
        expected = reference_logprobs(model, prompt, answer.ids)[range(len(answer.ids)), list(answer.ids)]
        torch.testing.assert_close(torch.tensor(answer.logprobs), expected, atol=0.5, rtol=0.1)


def test_a_saved_folder_is_loaded(tmp_path: Path) -> None:
    model = tiny_model()
    model.save_pretrained(tmp_path / "model")
    prompt = random_prompts(1)[0]
    answer = generations(HFEngine(tmp_path / "model", [EOS]), [prompt], SamplingParams(1.0, 5), [0])[0]
    assert_matches_plain_forward(model, prompt, answer)


def test_bad_arguments_are_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"config\.json"):
        HFEngine(tmp_path / "nowhere", [EOS])
    model = tiny_model()
    with pytest.raises(ValueError, match="eos_ids"):
        HFEngine(model, [])
    with pytest.raises(ValueError, match="max_prefill_tokens: expected >= 1, got 0"):
        HFEngine(model, [EOS], max_prefill_tokens=0)
    with pytest.raises(ValueError, match="float23"):
        HFEngine(model, [EOS], dtype="float23")
    engine = HFEngine(model, [EOS])
    with pytest.raises(ValueError, match="seeds: expected one per prompt"):
        engine.generate([[2]], SamplingParams(), [])
    with pytest.raises(ValueError, match="responses: expected one per prompt"):
        engine.logprobs([[2]], [])
    with pytest.raises(ValueError, match="request 1: empty prompt"):
        engine.logprobs([[2], []], [[3], [3]])
    with pytest.raises(ValueError, match="top_k: expected 1 to 101"):
        engine.score([[2]], [[3]], top_k=102)


def test_models_without_attention_are_refused() -> None:
    model = MambaForCausalLM(MambaConfig(vocab_size=VOCAB, hidden_size=8, num_hidden_layers=1, state_size=4))
    with pytest.raises(ValueError, match="attention layers only"):
        HFEngine(model, [EOS])
