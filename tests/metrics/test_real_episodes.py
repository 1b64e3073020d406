"""The metrics on real games, against a count that reads nothing but the transcript."""

import random
from itertools import count

import pytest
from episode_maker import response

from had.envs.alfworld.game import read_game
from had.envs.alfworld.grammar import HouseholdGrammar
from had.envs.alfworld.simulator import NativeEnv
from had.envs.household.source import HouseholdTasks
from had.harness.budget import Budget
from had.harness.compose import Harness
from had.harness.conditions import CONDITIONS
from had.harness.failure import Failure
from had.harness.stall import Stall
from had.metrics.functional import evaluate_metrics
from had.records import EpisodeStatus
from had.rollout.actor import Answer
from had.rollout.game import Game

MAX_TURNS, URGE_BELOW, MIN_REPEATS, WINDOW = 30, 11, 2, 5
HARNESS = Harness({"budget": Budget(URGE_BELOW), "failure": Failure(MIN_REPEATS), "stall": Stall(WINDOW)})
OUTSIDE_THE_GRAMMAR = ("dance", "go", "take everything")
USELESS = (
    *OUTSIDE_THE_GRAMMAR,
    None,
    "look",
    "inventory",
    "help",
    "open spaceship 1",
    "move mug 77 to desk 1",
)


def play(task, seed, condition):
    """Walks through the solution (even seeds) or wanders about (odd seeds), with useless commands between."""
    rng, solution = random.Random(seed), list(read_game(task.source).walkthrough)
    env, game = NativeEnv(), Game(task, seed, MAX_TURNS, HARNESS, CONDITIONS[condition], HouseholdGrammar())
    step = env.reset(task)
    game.start(step)
    favourite = rng.choice(USELESS)
    while game.status is None:
        if rng.random() < (0.35 if seed % 4 < 2 else 0.75):
            action = favourite if rng.random() < 0.6 else rng.choice(USELESS)
        else:
            is_solving = seed % 2 == 0 and solution
            action = solution.pop(0) if is_solving else rng.choice(step.commands)
        command = game.answer((), game.shown(), Answer(response(action)))
        if command is not None:
            step = env.step(command)
            game.executed(step)
    return game.episode("test", 0, game.status)


def transcript(episode):
    """Per turn what the definitions of the metrics speak of, worked out again from the text."""
    seen, failed, last_new = set(), {}, 0
    for turn in episode.turns:
        action, held = turn.response.action, turn.facts.held
        state = (turn.facts.location, held, turn.commands)
        if state not in seen:
            seen.add(state)
            last_new = turn.index
        tried = failed.setdefault(state, {})
        words = (action or "").split()
        used = {"move": words[1:3], "heat": words[1:3], "cool": words[1:3], "clean": words[1:3]}
        yield {
            "available": action in turn.commands,
            "proper": action is not None and action not in OUTSIDE_THE_GRAMMAR,
            "misused": bool(words) and words[0] in used and " ".join(used[words[0]]) not in held,
            "idle": bool(words) and words[0] in ("look", "inventory", "examine", "help"),
            "urged": MAX_TURNS - turn.index < URGE_BELOW,
            "reported": [c for c, times in tried.items() if times >= MIN_REPEATS],
            "stalled": turn.index - last_new >= WINDOW,
            "action": action,
            "state": state,
        }
        if action is not None and action not in turn.commands:  # in these games the others all have an effect
            tried[action] = tried.get(action, 0) + 1


def count_again(episodes):
    hits, totals = {}, {}

    def note(name, applies, obeys):
        totals[name] = totals.get(name, 0) + applies
        hits[name] = hits.get(name, 0) + (applies and obeys)

    for episode in episodes:
        turns, is_won = list(transcript(episode)), episode.status is EpisodeStatus.WON
        first = {}
        for i, turn in enumerate(turns):
            first.setdefault(turn["state"], i)
        arrivals = {i - 1 for i in first.values()}  # turns whose command led to a new state
        if episode.turns[-1].is_new_state:  # the state after the last turn is not in the transcript
            arrivals.add(len(turns) - 1)
        if is_won:
            arrivals.add(len(turns) - 1)
        for i, turn in enumerate(turns):
            proper = turn["proper"]
            note("hu_available", True, turn["available"])
            note("hu_situation", proper, not turn["misused"])
            note("hu_budget", proper and turn["urged"], not turn["idle"])
            note("hu_failure", proper and bool(turn["reported"]), turn["action"] not in turn["reported"])
            note("hu_stall", proper and turn["stalled"], bool(arrivals & set(range(i, i + 5))))
            if turn["stalled"] and (i == 0 or not turns[i - 1]["stalled"]):
                note("recovery", True, max(arrivals, default=-1) >= i)
        note("prevention", True, not any(turn["stalled"] for turn in turns))
        note("sr", True, is_won)
    return hits, totals


@pytest.mark.parametrize("condition", ["full", "hard_block"])
def test_metrics_of_twenty_games_equal_a_count_from_the_transcripts(tmp_path, condition):
    tasks = HouseholdTasks("small", num_train=20, cache_dir=tmp_path).tasks("train")
    episodes = [play(task, seed, condition) for task, seed in zip(tasks, count())]
    metrics = evaluate_metrics(episodes)
    hits, totals = count_again(episodes)
    for name, total in totals.items():
        assert metrics[name]["count"] == total, name
        assert metrics[name]["value"] == pytest.approx(hits[name] / total), name
        assert 0 < hits[name] <= total, f"{name}: the games do not exercise this metric"
    components = [
        metrics[f"hu_{c}"]["value"] for c in ("available", "situation", "budget", "failure", "stall")
    ]
    assert metrics["hu"]["value"] == pytest.approx(sum(components) / 5)
