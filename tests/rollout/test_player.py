"""The player: what it depends on, what it counts, and what becomes of every kind of failure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest

from char_tokenizer import CharTokenizer
from had.engines.base import EngineFailure
from had.envs.alfworld.grammar import HouseholdGrammar
from had.envs.base import EnvFailure
from had.envs.pool import SerialPool
from had.harness.conditions import CONDITIONS, get_condition
from had.harness.validity import EXPLANATIONS
from had.prompts.views import BLOCKED_OBSERVATION, NO_COMMAND_OBSERVATION
from had.records import Effect, EnvStep, Episode, EpisodeStatus, ParseFailure, Task, Turn, Verdict
from had.rollout.actor import Actor
from had.rollout.player import Player
from scripted_actors import RandomActor, Reply, ScriptedActor, char_renderer, two_lines
from tiny_world import SOLUTION, TinyWorld, quick_harness, tiny_task

TASKS = [tiny_task(name) for name in "abcdefg"]


class FragileWorld(TinyWorld):
    """Fails where the task's source says so."""

    def reset(self, task: Task) -> EnvStep:
        self.source = task.source
        if task.source == "fails at reset":
            raise EnvFailure("no such game")
        return super().reset(task)

    def step(self, command: str) -> EnvStep:
        if self.source == "crashes at open" and command.startswith("open"):
            raise RuntimeError("segfault")
        answer = super().step(command)
        if self.source == "is lost at open" and command.startswith("open"):
            return EnvStep("You die.", (), answer.state, Effect.CHANGED, 0.0, -100.0, is_done=True)
        return answer


def play(
    tasks: Sequence[Task],
    actor: Actor,
    condition: str = "full",
    num_slots: int = 3,
    max_turns: int = 8,
    max_prompt_tokens: int = 10**6,
    **options,
) -> list[Episode]:
    player = Player(
        SerialPool(FragileWorld, num_slots),
        HouseholdGrammar(),
        quick_harness(),
        char_renderer(max_prompt_tokens=max_prompt_tokens),
        max_turns,
    )
    return player.play(tasks, actor, condition=get_condition(condition), **{"seed": 5, **options})


def play_one(*replies: Reply, **options) -> Episode:
    return play([tiny_task()], ScriptedActor({"tiny/a": replies}), **options)[0]


def actions(episode: Episode) -> list[str | None]:
    return [turn.response.action for turn in episode.turns]


# what results depend on


@pytest.mark.parametrize("num_slots", [2, 3, 7, 20])
def test_results_do_not_depend_on_the_number_of_slots(num_slots: int) -> None:
    alone = play(TASKS, RandomActor(), num_slots=1)
    assert play(TASKS, RandomActor(), num_slots=num_slots) == alone
    assert len({tuple(actions(episode)) for episode in alone}) == len(TASKS)


def test_results_do_not_depend_on_order_or_company() -> None:
    forward = play(TASKS, RandomActor(), num_slots=2)
    backward = play(TASKS[::-1], RandomActor(), num_slots=2)
    assert [episode.task for episode in backward] == TASKS[::-1]
    assert backward[::-1] == forward
    assert play(TASKS[3:4], RandomActor()) == forward[3:4]


def test_the_seed_decides() -> None:
    assert play(TASKS, RandomActor(), seed=5) == play(TASKS, RandomActor(), seed=5)
    assert play(TASKS, RandomActor(), seed=5) != play(TASKS, RandomActor(), seed=6)


def test_a_player_can_be_used_again() -> None:
    player = Player(SerialPool(TinyWorld, 2), HouseholdGrammar(), quick_harness(), char_renderer(), 8)
    assert player.play(TASKS, RandomActor(), seed=1) == player.play(TASKS, RandomActor(), seed=1)


def test_a_task_that_is_played_twice_gets_two_ids_and_two_seeds() -> None:
    first, other, second = play([TASKS[0], TASKS[1], TASKS[0]], RandomActor(), prefix="r0001")
    assert [first.id, other.id, second.id] == ["r0001/tiny/a", "r0001/tiny/b", "r0001/tiny/a#2"]
    assert first.seed != second.seed and actions(first) != actions(second)


def test_all_free_slots_are_used_at_once() -> None:
    actor = ScriptedActor({task.id: SOLUTION for task in TASKS})
    play(TASKS, actor, num_slots=3)
    assert [len(batch) for batch in actor.batches] == [3] * 5 + [3] * 5 + [1] * 5


# how episodes end


def test_a_won_episode() -> None:
    episode = play_one(*SOLUTION, prefix="x", policy_version=4)
    assert (episode.status, episode.is_won, episode.score, episode.reward) == ("won", True, 100.0, 1.0)
    assert (episode.id, episode.policy_version, episode.message) == ("x/tiny/a", 4, "")
    assert actions(episode) == list(SOLUTION)
    assert [turn.index for turn in episode.turns] == [0, 1, 2, 3, 4]
    assert [turn.facts.turn for turn in episode.turns] == [1, 2, 3, 4, 5]


def test_the_last_turn_counts_and_none_follows_it() -> None:
    assert play_one(*SOLUTION, max_turns=5).status is EpisodeStatus.WON
    late = play_one(*SOLUTION, max_turns=4)
    assert (late.status, len(late.turns), late.score) == (EpisodeStatus.OUT_OF_TURNS, 4, 0.0)


def test_an_episode_that_the_environment_ends() -> None:
    task = tiny_task(source="is lost at open")
    (episode,) = play([task], ScriptedActor({task.id: SOLUTION}))
    assert (episode.status, episode.score, len(episode.turns)) == (EpisodeStatus.LOST, -100.0, 4)


def test_failures_end_their_own_episode_only() -> None:
    tasks = [
        tiny_task("a"),
        tiny_task("b", source="fails at reset"),
        tiny_task("c", source="crashes at open"),
        tiny_task("d"),
        tiny_task("e", goal="win " + "x" * 5_000),
        tiny_task("f"),
    ]
    scripts: dict[str, Sequence[Reply]] = {task.id: SOLUTION for task in tasks}
    scripts["tiny/d"] = ("look", EngineFailure("out of memory"))
    seen = []
    episodes = play(
        tasks, ScriptedActor(scripts), max_prompt_tokens=4_000, progress=lambda *counts: seen.append(counts)
    )
    assert [episode.status.value for episode in episodes] == [
        "won", "env_failed", "env_failed", "engine_failed", "engine_failed", "won",
    ]  # fmt: skip
    assert [episode.is_failed for episode in episodes] == [False, True, True, True, True, False]
    assert [len(episode.turns) for episode in episodes] == [5, 0, 3, 1, 0, 5]
    messages = [episode.message for episode in episodes]
    assert messages[0] == messages[5] == "" and messages[1] == "no such game"
    assert "segfault" in messages[2] and messages[3] == "out of memory" and "at most 4000" in messages[4]
    assert seen == [(number, 6) for number in range(1, 7)]


def test_a_failed_environment_is_replaced_for_the_next_task_in_its_slot() -> None:
    sources = {"a": "crashes at open", "b": "", "c": "fails at reset", "d": ""}
    tasks = [tiny_task(name, source=source) for name, source in sources.items()]
    episodes = play(tasks, ScriptedActor({task.id: SOLUTION for task in tasks}), num_slots=1)
    assert [episode.status.value for episode in episodes] == ["env_failed", "won", "env_failed", "won"]


def test_a_history_that_grows_too_long_loses_its_oldest_turns_instead_of_failing() -> None:
    prompts = [turn.prompt_ids for turn in play_one("look", max_turns=8).turns]
    assert len(prompts[-1]) > len(prompts[0]) + 100
    limit = len(prompts[0]) + 100
    episode = play_one("look", max_turns=8, max_prompt_tokens=limit)
    assert episode.status is EpisodeStatus.OUT_OF_TURNS
    assert max(len(turn.prompt_ids) for turn in episode.turns) <= limit


def test_no_tasks_no_episodes() -> None:
    assert play([], RandomActor()) == []


# what turns say


def test_replies_without_a_command_use_up_turns_and_are_told() -> None:
    replies = ("", "Thought: hm\nAction:", "Action: a\nAction: b", "Thought: no\n", "look")
    episode = play_one(*replies, max_turns=5)
    assert [turn.response.failure for turn in episode.turns] == [
        ParseFailure.EMPTY,
        ParseFailure.EMPTY_ACTION,
        ParseFailure.SEVERAL_ACTIONS,
        ParseFailure.NO_ACTION,
        None,
    ]
    assert [turn.observation for turn in episode.turns[1:]] == [NO_COMMAND_OBSERVATION] * 4
    for turn in episode.turns[:4]:
        assert flags(turn) == set() and turn.effect is Effect.NO_EFFECT
    assert episode.turns[4].facts.turns_without_new_state == 4
    assert episode.turns[4].report.failures == ()
    assert {turn.commands for turn in episode.turns} == {episode.turns[0].commands}


def flags(turn: Turn) -> set[str]:
    names = ("is_available", "is_in_grammar", "is_misused", "is_idle", "is_blocked", "is_new_state")
    return {name.removeprefix("is_") for name in names if getattr(turn, name)}


COMMANDS_AND_FLAGS = [
    ("go to countertop 1", {"available", "in_grammar", "new_state"}, Effect.CHANGED),
    ("go to countertop 1", {"in_grammar"}, Effect.NO_EFFECT),
    ("look", {"available", "in_grammar", "idle"}, Effect.INFORMATIONAL),
    ("inventory", {"in_grammar", "idle"}, Effect.NO_EFFECT),
    ("sing", set(), Effect.NO_EFFECT),
    ("move apple 1 to countertop 1", {"in_grammar", "misused"}, Effect.NO_EFFECT),
    ("take apple 1 from countertop 1", {"available", "in_grammar", "new_state"}, Effect.CHANGED),
    ("clean apple 1 with sinkbasin 1", {"in_grammar"}, Effect.NO_EFFECT),
    ("move apple 1 to countertop 1", {"available", "in_grammar"}, Effect.CHANGED),
]


def test_flags_and_effects() -> None:
    episode = play_one(*(command for command, _, _ in COMMANDS_AND_FLAGS), max_turns=9)
    for turn, (command, expected, effect) in zip(episode.turns, COMMANDS_AND_FLAGS, strict=True):
        assert (turn.response.action, flags(turn), turn.effect) == (command, expected, effect)


def test_turns_keep_prompt_text_report_and_actor() -> None:
    episode = play_one("look", "sing", "sing", "sing", "look", max_turns=5)
    harness = quick_harness()
    for turn in episode.turns:
        prompt = CharTokenizer().decode(turn.prompt_ids)
        assert turn.harness_text == harness.text(turn.facts, episode.seed)
        assert f"{turn.observation}\n{turn.harness_text}\nAdmissible commands:" in prompt
        assert turn.report == harness.report(turn.facts)
        assert turn.actor == "student" and turn.reply == turn.response.text.strip()
    last = episode.turns[4]
    assert last.report.failures == ("sing",) and last.report.is_stalled and last.report.is_urged
    assert "sing (3 times)" in last.harness_text


# conditions


@pytest.mark.parametrize("condition", CONDITIONS)
def test_facts_and_reports_are_the_same_under_every_condition(condition: str) -> None:
    replies = ("look", "look", "go to cabinet 1", "go to sinkbasin 1", "go to cabinet 1", "look")
    full, other = play_one(*replies), play_one(*replies, condition=condition)
    assert [(turn.facts, turn.report, turn.effect) for turn in other.turns] == [
        (turn.facts, turn.report, turn.effect) for turn in full.turns
    ]
    is_shown = any(turn.harness_text for turn in other.turns)
    assert is_shown == (condition != "off")


def test_off_shows_no_harness_text_in_the_prompt() -> None:
    for turn in play_one("look", condition="off").turns:
        assert f"{turn.observation}\nAdmissible commands:" in CharTokenizer().decode(turn.prompt_ids)


def test_hard_block_keeps_rejected_commands_from_being_executed_and_says_why() -> None:
    replies = ("open cabinet 1", "open cabinet 1", "move apple 1 to cabinet 1", "", "go to cabinet 1", "look")
    episode = play_one(*replies, condition="hard_block", max_turns=6)
    assert [turn.is_blocked for turn in episode.turns] == [True, True, True, False, False, False]
    told = [
        BLOCKED_OBSERVATION.format(reason=EXPLANATIONS[verdict])
        for verdict in (Verdict.NOT_ADMISSIBLE, Verdict.REPEATED_FAILURE, Verdict.NOT_HELD)
    ]
    assert [turn.observation for turn in episode.turns[1:4]] == told
    assert episode.turns[4].observation == NO_COMMAND_OBSERVATION
    assert episode.turns[5].observation == "You arrive at cabinet 1."
    assert episode.turns[3].facts.failures == (("open cabinet 1", 2), ("move apple 1 to cabinet 1", 1))
    assert [turn.effect.value for turn in episode.turns] == ["no_effect"] * 4 + ["changed", "informational"]


def test_a_blocked_command_never_reaches_the_environment() -> None:
    received: Counter[str] = Counter()

    class Listening(TinyWorld):
        def step(self, command: str) -> EnvStep:
            received[command] += 1
            return super().step(command)

    player = Player(SerialPool(Listening, 2), HouseholdGrammar(), quick_harness(), char_renderer(), 4)
    actor = ScriptedActor({task.id: ("sing", "look") for task in TASKS})
    player.play(TASKS, actor, seed=0, condition=get_condition("hard_block"))
    assert set(received) == {"look"}
    player.play(TASKS, actor, seed=0)
    assert received["sing"] == len(TASKS)


def test_an_environment_without_a_command_list_judges_by_its_grammar() -> None:
    class Silent(TinyWorld):
        def _answer(self, observation: str, effect: Effect) -> EnvStep:
            step = super()._answer(observation, effect)
            return EnvStep(step.observation, (), step.state, step.effect)

    player = Player(SerialPool(Silent, 1), HouseholdGrammar(), quick_harness(), char_renderer(), 2)
    actor = ScriptedActor({"tiny/a": ("open fridge 9", two_lines("sing"))})
    (episode,) = player.play(TASKS[:1], actor, seed=0)
    assert [turn.is_available for turn in episode.turns] == [True, False]
