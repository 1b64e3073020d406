"""The texts of refusals: from real play, and nothing but refusals."""

from __future__ import annotations

import random
import re
from collections import Counter
from typing import Any

import pytest

from had.envs.scienceworld.refusals import UNAVAILABLE, WITHOUT_EFFECT, choices, is_refused, is_unavailable
from had.envs.scienceworld.tasks import SPLIT_SIZES
from had.envs.scienceworld.templates import TEMPLATES
from had.records import Effect, Task

UNKNOWN = "No known action matches that input."
CANCELLED = (
    "Unknown action.  Type 'help' for a list of actions, "
    "and 'objects' for a list of possible object referents. "
)
QUESTION = (
    "Ambiguous request: Please enter the number for the action you intended (or blank to cancel):\n"
    "0:\tpick up orange (in inventory, in agent, in kitchen)\n"
    "1:\tpick up orange (in bowl, in counter, in kitchen)\n\n"
)


@pytest.mark.parametrize("text", [UNKNOWN, CANCELLED])
def test_there_was_no_such_command(text: str) -> None:
    assert is_unavailable(text) and is_refused(text)


@pytest.mark.parametrize(
    "text",
    [
        "The fridge is already open.",
        "The door is not open.",
        "The glass jar is not something that can be activated.",
        "The glass jar can't be poured out, because it's not open.",
        "It's not clear how to read that.",
        "Its not clear how to go to/through a picture.",
        "I'm not sure how to pour a solid. ",
        "That can't be moved there, because it's not a container.",
        "You can't move something into itself.",
        "There is only one thing (sodium chloride)",
        "Mixing the contents of the counter does not appear to produce anything new.",
    ],
)
def test_nothing_came_of_it(text: str) -> None:
    assert is_refused(text) and not is_unavailable(text)


@pytest.mark.parametrize(
    "text",
    [
        "The fridge is now open.",
        "You move the orange to the inventory.",
        "(disconnecting water)\nI'm not sure how to pour a solid.",
        "Inside the sink is: \n\tnothing",
        "the thermometer measures a temperature of 10 degrees celsius",
        "Blue and yellow paint mix to produce green paint.",
        "You decide to wait for 1 iterations.",
        QUESTION,
        "",
    ],
)
def test_what_is_no_refusal(text: str) -> None:
    assert not is_refused(text)


def test_a_question_is_answered_by_its_numbers() -> None:
    assert choices(QUESTION) == ("0", "1")
    assert choices("0:\tpick up orange") == ()


def _command(rng: random.Random, gold: list[str], things: list[str]) -> str:
    """Mostly a random template over the things at hand, sometimes the next step of the gold path."""
    if gold and rng.random() < 0.3:
        return gold.pop(0)
    if rng.random() < 0.05:
        return rng.choice(["frobnicate the door", "1", "teleport to narnia"])
    template = rng.choice([form for form in TEMPLATES if not form.startswith("focus")])
    return re.sub("OBJ", lambda _: rng.choice(things), template)


@pytest.mark.slow
@pytest.mark.java
def test_real_play_shows_every_text_and_a_refusal_never_changes_more_than_time_does(env: Any) -> None:
    rng = random.Random(0)
    seen: Counter[str] = Counter()
    changed_by_time = refused = 0
    for name in SPLIT_SIZES:
        gold = list(
            env.load(Task("g", "train", name, "", f"{name}/0"), with_gold_path=True).getGoldActionSequence()
        )
        before = env.reset(Task("t", "train", name, "", f"{name}/0"))
        for _ in range(150):
            things = list(env._simulator.getPossibleObjects())
            step = env.step(_command(rng, gold, things))
            text = step.observation.strip()
            if step.effect is Effect.NO_EFFECT:
                refused += 1
                changed_by_time += (step.state.held, step.state.location) != (
                    before.state.held,
                    before.state.location,
                )
                seen.update(
                    pattern
                    for pattern in UNAVAILABLE + WITHOUT_EFFECT
                    if re.fullmatch(pattern.replace("X", ".+?"), text)
                )
            before = step
            if step.is_done:
                break
    missing = [pattern for pattern in UNAVAILABLE + WITHOUT_EFFECT if not seen[pattern]]
    print(f"{refused} refusals, texts: {dict(seen)}, moved meanwhile: {changed_by_time}")
    assert missing == []
    assert changed_by_time == 0
    assert refused > 500
