"""Sampling by inverse distribution function."""

import torch

from had.engines.sampling import draw_uniforms, sample


def test_uniforms_depend_on_the_seed_only() -> None:
    alone = draw_uniforms([7], 3)
    together = draw_uniforms([1, 7], 5)
    assert torch.equal(alone[0], together[1, :3])
    assert not torch.equal(together[0], together[1])


def test_inverse_distribution_function_at_its_borders() -> None:
    logits = torch.tensor([[0.0, 0.5, 0.25, 0.25]]).log()  # the first token is impossible
    for uniform, expected in ((0.0, 1), (0.49, 1), (0.51, 2), (0.74, 2), (0.76, 3), (1 - 2**-53, 3)):
        ids, logprobs = sample(logits, 1.0, torch.tensor([uniform], dtype=torch.float64))
        assert ids.tolist() == [expected]
        torch.testing.assert_close(logprobs, logits[0, expected][None])


def test_frequencies_follow_the_temperature() -> None:
    logits = torch.tensor([2.0, 1.0, 0.0, -3.0])
    uniforms = draw_uniforms([0], 20_000)[0]
    for temperature in (0.5, 1.0, 2.0):
        ids, logprobs = sample(logits.expand(len(uniforms), -1), temperature, uniforms)
        frequencies = torch.bincount(ids, minlength=4) / len(uniforms)
        torch.testing.assert_close(frequencies, torch.softmax(logits / temperature, 0), atol=0.015, rtol=0)
        # recorded at temperature 1, whatever the sampling temperature
        torch.testing.assert_close(logprobs, torch.log_softmax(logits, 0)[ids])


def test_temperature_zero_takes_the_most_probable_token() -> None:
    logits = torch.tensor([[0.0, 1.0, 0.9], [2.0, 1.0, 0.9]])
    ids, _ = sample(logits, 0.0, torch.tensor([0.999, 0.999], dtype=torch.float64))
    assert ids.tolist() == [1, 0]
