"""Mixed acting: the schedule of the paper, and who answers which turn."""

from __future__ import annotations

import pytest

from had.engines.base import EngineFailure
from had.rollout.actor import Request, RoundActor
from had.rollout.mixture import CosineDecay, MixtureActor
from scripted_actors import answer, two_lines


@pytest.mark.parametrize(
    ("num_done", "probability"), [(0, 1), (50, 0.853553), (100, 0.5), (150, 0.146447), (200, 0), (249, 0)]
)
def test_schedule_of_250_updates(num_done, probability):
    assert CosineDecay(250)(num_done) == pytest.approx(probability, abs=1e-6)


def test_schedule_counts_whole_updates_and_short_runs_end_without_the_teacher():
    assert CosineDecay(9)(7) == 0 and CosineDecay(9)(6) > 0  # floor(7.2) = 7
    assert CosineDecay(1)(0) == 0
    with pytest.raises(ValueError, match=r"trainer\.max_steps"):
        CosineDecay(0)


class Named:
    def __init__(self, name: str) -> None:
        self.name = name

    def act(self, requests):
        """Fails at every seventh seed."""
        replies = [EngineFailure("no") if it.seed % 7 == 0 else two_lines("look") for it in requests]
        return [answer(reply, self.name) for reply in replies]


def request(seed: int) -> Request:
    return Request((1,), seed, "t", 0)


def actors_of(probability: float, requests: list[Request]) -> list[str | None]:
    """Who answered each request; None for a failure."""
    actor = MixtureActor(Named("student"), Named("teacher"), lambda num_done: probability)
    return [None if isinstance(it, EngineFailure) else it.actor for it in actor.act(requests)]


@pytest.mark.parametrize("probability", [0.0, 0.3, 1.0])
def test_turns_are_split_by_their_seeds_in_the_order_of_the_requests(probability):
    requests = [request(seed) for seed in range(1, 2001)]
    actors = actors_of(probability, requests)
    assert all((name is None) == (it.seed % 7 == 0) for it, name in zip(requests, actors, strict=True))
    answered = [name for name in actors if name is not None]
    assert answered.count("teacher") / len(answered) == pytest.approx(probability, abs=0.03)
    assert [actors_of(probability, [it])[0] for it in requests[:50]] == actors[:50]


def test_probability_is_fixed_within_a_round():
    actor = MixtureActor(Named("student"), Named("teacher"), CosineDecay(250))
    assert isinstance(actor, RoundActor) and actor.probability == 1
    actor.begin_round(100)
    assert actor.probability == pytest.approx(0.5)
