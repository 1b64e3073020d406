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


# Commands in the kitchen of boil/0; the last one is answered by the text.
PROVOKED = {
    UNAVAILABLE[0]: ["fly"],
    UNAVAILABLE[1]: ["get orange", "look around"],
    WITHOUT_EFFECT[0]: ["open fridge", "open fridge"],
    WITHOUT_EFFECT[1]: ["open painting"],
    WITHOUT_EFFECT[2]: ["activate painting"],
    WITHOUT_EFFECT[3]: ["look in fridge"],
    WITHOUT_EFFECT[4]: ["dunk glass cup in sink"],
    WITHOUT_EFFECT[5]: ["pour glass jar in sink"],
    WITHOUT_EFFECT[6]: ["pour painting in sink"],
    WITHOUT_EFFECT[7]: ["read stove"],
    WITHOUT_EFFECT[8]: ["use stove on sink"],
    WITHOUT_EFFECT[9]: ["move lighter to agent"],
    WITHOUT_EFFECT[10]: ["use thermometer on stove"],
    WITHOUT_EFFECT[11]: ["mix sink"],
    WITHOUT_EFFECT[12]: ["mix glass jar"],
    WITHOUT_EFFECT[13]: ["mix counter"],
    WITHOUT_EFFECT[14]: ["move glass cup to glass cup"],
    WITHOUT_EFFECT[15]: ["pick up air"],
    WITHOUT_EFFECT[16]: ["teleport to outside", "move water to wood"],
    WITHOUT_EFFECT[17]: ["connect stove to stove"],
    WITHOUT_EFFECT[18]: ["teleport to workshop", "connect battery to switch"],
    WITHOUT_EFFECT[19]: [
        "teleport to workshop",
        "connect battery anode to black wire terminal 1",
        "connect battery anode to black wire terminal 2",
    ],
    WITHOUT_EFFECT[20]: ["teleport to workshop", "disconnect battery anode"],
}


@pytest.mark.java
@pytest.mark.parametrize("pattern", UNAVAILABLE + WITHOUT_EFFECT)
def test_the_simulator_says_so(env: Any, pattern: str) -> None:
    env.reset(Task("t", "train", "boil", "", "boil/0"))
    env.step("teleport to kitchen")
    steps = [env.step(command) for command in PROVOKED[pattern]]
    assert re.fullmatch(pattern.replace("X", ".+?"), steps[-1].observation.strip()), steps[-1].observation
    assert [step.effect for step in steps[:-1]].count(Effect.NO_EFFECT) == 0
    assert steps[-1].effect is Effect.NO_EFFECT


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
def test_in_random_play_of_all_tasks_a_refusal_never_moves_the_agent(env: Any) -> None:
    rng = random.Random(0)
    seen: Counter[str] = Counter()
    for name in SPLIT_SIZES:
        task = Task("t", "train", name, "", f"{name}/0")
        gold = list(env.load(task, with_gold_path=True).getGoldActionSequence())
        before = env.reset(task)
        for _ in range(100):
            things = list(env._simulator.getPossibleObjects())
            step = env.step(_command(rng, gold, things))
            if step.effect is Effect.NO_EFFECT:
                text = step.observation.strip()
                kinds = [p for p in UNAVAILABLE + WITHOUT_EFFECT if re.fullmatch(p.replace("X", ".+?"), text)]
                assert len(kinds) == 1, text
                seen[kinds[0]] += 1
                assert step.state.location == before.state.location
            before = step
            if step.is_done:
                break
    print(f"{sum(seen.values())} refusals in {len(seen)} of {len(PROVOKED)} kinds")
    assert sum(seen.values()) > 500 and len(seen) > 12
