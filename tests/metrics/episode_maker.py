"""Builds turns, episodes and records tersely: a turn is a string of words."""

from __future__ import annotations

import random

from had.records import (
    Episode,
    EpisodeStatus,
    HarnessFacts,
    HarnessReport,
    Record,
    Response,
    Task,
    TeacherLabels,
    Turn,
)

WORDS = {"new", "stalled", "urged", "idle", "misused", "absent", "ungrammatical", "unparsed", "failures"}
REPORTED = "open drawer 1"
STATUSES = {
    "won": EpisodeStatus.WON,
    "lost": EpisodeStatus.LOST,
    "out": EpisodeStatus.OUT_OF_TURNS,
    "env": EpisodeStatus.ENV_FAILED,
    "engine": EpisodeStatus.ENGINE_FAILED,
}


def response(action: str | None) -> Response:
    return Response(ids=(), logprobs=(), text="", is_complete=True, action=action)


def turn(words: str = "", action: str = "go to desk 1", index: int = 0) -> Turn:
    """A turn with an admissible command of the grammar, unless the words say otherwise.

    `stalled`, `urged`, `failures` (reports that REPORTED failed) are the report before the command; `new`,
    `idle`, `misused`, `absent` (not admissible), `ungrammatical`, `unparsed` describe the command.
    """
    given = set(words.split())
    assert given <= WORDS, given - WORDS
    has_command = "unparsed" not in given
    return Turn(
        index=index,
        observation="",
        commands=(),
        facts=HarnessFacts(1, 20, None, (), (), (), None, 0, (), (), 0),
        report=HarnessReport(
            "urged" in given, (REPORTED,) if "failures" in given else (), "stalled" in given
        ),
        harness_text="",
        prompt_ids=(),
        response=response(action if has_command else None),
        is_available=has_command and not given & {"absent", "ungrammatical"},
        is_in_grammar=has_command and "ungrammatical" not in given,
        is_misused="misused" in given,
        is_idle="idle" in given,
        is_new_state="new" in given,
    )


def episode(
    *turns: str | Turn, status: str = "out", task: str = "t", score: float = 0.0, reward: float = 0.0
) -> Episode:
    built = [turn(t, index=i) if isinstance(t, str) else t for i, t in enumerate(turns)]
    return Episode(
        id=f"e/{task}",
        task=Task(id=task, split="s", type="", goal=""),
        turns=tuple(built),
        status=STATUSES[status],
        score=score,
        reward=reward,
    )


def record(position: float, positive: str | None, negative: str | None, is_asked: bool = True) -> Record:
    labels = TeacherLabels(response(positive), response(negative)) if is_asked else TeacherLabels()
    return Record("r", "e", 0, position, 0, 0, (), (), response("look"), labels)


def random_episode(rng: random.Random, task: str) -> Episode:
    """Any words in any order, also combinations that no tracker would produce."""
    turns = []
    for index in range(rng.randint(0, 14)):
        words = " ".join(word for word in sorted(WORDS) if rng.random() < 0.25)
        turns.append(turn(words, rng.choice([REPORTED, "look", "go to bed 1"]), index))
    status = rng.choice(sorted(STATUSES))
    return episode(*turns, status=status, task=task, score=rng.uniform(-100, 100), reward=rng.random())


def random_episodes(seed: int, count: int) -> list[Episode]:
    rng = random.Random(seed)
    return [random_episode(rng, f"task/{i}") for i in range(count)]
