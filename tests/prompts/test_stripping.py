"""Nothing but the harness text differs between the views: hundreds of random states of real games."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from char_tokenizer import CharTokenizer
from had.envs.alfworld.grammar import HouseholdGrammar
from had.envs.alfworld.simulator import NativeEnv
from had.envs.alfworld.tasks import AlfworldTasks
from had.envs.household.source import HouseholdTasks
from had.envs.pool import SerialPool
from had.harness.part import Draw
from had.prompts.views import PromptFormat, View
from had.records import Episode, Task, Turn
from had.rollout.player import Player
from scripted_actors import RandomActor, char_renderer
from tiny_world import quick_harness

FORMATS = [PromptFormat(history_turns=k, harness_in_history=h) for k in (None, 0, 2) for h in ("last", "all")]
NUM_STATES = 300
NUM_TASKS = 18

each_format = pytest.mark.parametrize(
    "prompt", FORMATS, ids=lambda prompt: f"{prompt.history_turns}-{prompt.harness_in_history}"
)


def play_at_random(tasks: Sequence[Task]) -> list[Episode]:
    pool = SerialPool(NativeEnv, 8)
    player = Player(pool, HouseholdGrammar(), quick_harness(), char_renderer(), max_turns=20)
    return player.play(tasks, RandomActor(), seed=1)


@pytest.fixture(scope="module")
def household_episodes() -> list[Episode]:
    return play_at_random(HouseholdTasks("small", num_train=NUM_TASKS).tasks("train"))


@pytest.fixture(scope="module")
def alfworld_episodes(alfworld_data: Path, tmp_path_factory) -> list[Episode]:
    cache = tmp_path_factory.mktemp("index")
    source = AlfworldTasks(str(alfworld_data), expect_counts=False, cache_dir=str(cache))
    return play_at_random(source.tasks("valid_unseen")[:NUM_TASKS])


@pytest.fixture(
    params=["household_episodes", pytest.param("alfworld_episodes", marks=pytest.mark.alfworld_data)]
)
def episodes(request: pytest.FixtureRequest) -> list[Episode]:
    return request.getfixturevalue(request.param)


def states(episodes: Sequence[Episode]) -> Iterator[tuple[Episode, Sequence[Turn], Turn]]:
    for episode in episodes:
        for index, turn in enumerate(episode.turns):
            yield episode, episode.turns[:index], turn


def strip(text: str, shown: Sequence[Turn]) -> str:
    """`text` without the harness text of the turns that show it, each removed once, in order."""
    kept, position = "", 0
    for turn in shown:
        start = text.index(f"\n{turn.harness_text}", position)
        kept += text[position:start]
        position = start + 1 + len(turn.harness_text)
    return kept + text[position:]


def sentences(episode: Episode, turn: Turn) -> list[str]:
    draw = Draw(episode.seed, turn.facts.turn)
    parts = quick_harness().parts.values()
    return [sentence for part in parts for _, sentence in part.sentences(turn.facts, draw)]


def test_the_random_play_reaches_every_kind_of_warning_and_of_turn(episodes: list[Episode]) -> None:
    turns = [turn for _, _, turn in states(episodes)]
    assert len(turns) >= NUM_STATES
    warnings = {(turn.report.is_urged, turn.report.is_stalled) for turn in turns}
    assert warnings >= {(True, True), (False, False)}
    assert any(turn.report.failures for turn in turns)
    assert any(turn.facts.earlier_visits for turn in turns) and any(turn.facts.held for turn in turns)
    assert any(turn.response.action is None for turn in turns)
    assert {turn.effect.value for turn in turns} == {"changed", "informational", "no_effect"}


def test_the_harness_text_is_made_of_the_sentences_that_are_looked_for(episodes: list[Episode]) -> None:
    for episode, _, turn in states(episodes):
        assert turn.harness_text == " ".join(sentences(episode, turn))


@each_format
def test_stripping_the_harness_text_gives_the_other_view(
    episodes: list[Episode], prompt: PromptFormat
) -> None:
    renderer, decode = char_renderer(prompt), CharTokenizer().decode
    for episode, past, now in states(episodes):
        goal = episode.task.goal
        with_harness = decode(renderer.prompt(goal, past, now, View.WITH_HARNESS))
        without_harness = decode(renderer.prompt(goal, past, now, View.WITHOUT_HARNESS))
        kept = past if prompt.history_turns is None else past[max(0, len(past) - prompt.history_turns) :]
        shown = [*kept, now] if prompt.harness_in_history == "all" else [now]
        assert with_harness != without_harness
        assert strip(with_harness, shown) == without_harness


@each_format
def test_no_sentence_of_the_harness_reaches_the_negative_view(
    episodes: list[Episode], prompt: PromptFormat
) -> None:
    for episode, past, now in states(episodes):
        messages = prompt.messages(episode.task.goal, past, now, View.WITHOUT_HARNESS)
        text = "\n".join(message["content"] for message in messages)
        for turn in (*past, now):
            assert not any(sentence in text for sentence in sentences(episode, turn))


def test_when_turns_are_dropped_both_views_drop_the_same(episodes: list[Episode]) -> None:
    everything, decode = char_renderer(), CharTokenizer().decode
    num_dropped_alone = 0
    for episode, past, now in [state for state in states(episodes) if len(state[1]) > 3][::7]:
        goal = episode.task.goal
        whole = everything.prompt(goal, past, now, View.WITHOUT_HARNESS)
        tight = char_renderer(max_prompt_tokens=len(whole))  # room for this view, none for the other
        texts = [decode(tight.prompt(goal, past, now, view)) for view in View]
        assert strip(texts[0], [now]) == texts[1]
        num_dropped_alone += len(texts[1]) < len(whole)
    assert num_dropped_alone > 10
