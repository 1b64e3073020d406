"""The native simulator against the TextWorld engine on real games: the same answer to every command."""

from __future__ import annotations

from pathlib import Path

import pytest
from side_by_side import SideBySide

from had.envs.alfworld.game import read_game
from had.envs.alfworld.simulator import NativeEnv
from had.envs.alfworld.textworld_env import TextWorldEnv
from had.records import Task

pytestmark = pytest.mark.alfworld_data

NUM_GAMES_OF_TYPE = 10
NUM_RANDOM = 16
TYPES = (
    *("pick_and_place_simple", "look_at_obj_in_light", "pick_clean_then_place_in_recep"),
    *("pick_heat_then_place_in_recep", "pick_cool_then_place_in_recep", "pick_two_obj_and_place"),
)


@pytest.fixture(scope="module")
def both() -> SideBySide:
    return SideBySide(TextWorldEnv(), NativeEnv())


def _type_of(path: Path) -> str:
    return path.parts[-3].split("-")[0]


def _play(both: SideBySide, path: Path, num_random: int, seed: int) -> int:
    game = read_game(path)
    task = Task(str(path), "any", _type_of(path), game.goal_sentence, str(path))
    num_steps, is_won = both.play(task, game.walkthrough, num_random, seed)
    assert is_won, path
    return num_steps


@pytest.mark.parametrize("task_type", TYPES)
def test_same_answers_on_games_of_every_type_and_split(
    both: SideBySide, alfworld_games: dict[str, list[Path]], task_type: str
) -> None:
    by_split = [[path for path in paths if _type_of(path) == task_type] for paths in alfworld_games.values()]
    chosen: list[Path] = []
    for num_of_split, paths in zip((4, 3, 3), by_split, strict=True):
        chosen += paths[:: max(1, len(paths) // num_of_split)][:num_of_split]
    assert len(chosen) == NUM_GAMES_OF_TYPE
    for seed, path in enumerate(chosen):
        _play(both, path, NUM_RANDOM, seed)


@pytest.mark.slow
def test_same_answers_on_every_game(both: SideBySide, alfworld_games: dict[str, list[Path]]) -> None:
    paths = [path for paths in alfworld_games.values() for path in paths]
    num_steps = sum(_play(both, path, NUM_RANDOM, seed) for seed, path in enumerate(paths))
    print(f"{len(paths)} games, {num_steps} commands, no difference")


def _lost_walkthroughs(paths: list[Path]) -> list[Path]:
    """The games whose stored walkthrough is refused somewhere or does not win in the native simulator."""
    env = NativeEnv()
    lost = []
    for path in paths:
        game = read_game(path)
        answer = env.reset_game(game)
        for command in game.walkthrough:
            if command not in answer.commands:
                break
            answer = env.step(command)
        if not answer.is_won:
            lost.append(path)
    return lost


def test_every_stored_walkthrough_of_the_evaluation_games_wins(alfworld_games: dict[str, list[Path]]) -> None:
    paths = alfworld_games["valid_seen"] + alfworld_games["valid_unseen"]
    assert len(paths) == 274
    assert _lost_walkthroughs(paths) == []


@pytest.mark.slow
def test_every_stored_walkthrough_of_the_train_games_wins(alfworld_games: dict[str, list[Path]]) -> None:
    assert len(alfworld_games["train"]) == 3553
    assert _lost_walkthroughs(alfworld_games["train"]) == []
