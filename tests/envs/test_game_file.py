"""Reading game files: names, goals, and messages that say which file is wrong and how."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tiny_game import GOALS, tiny_game

from had.envs.alfworld.game import Goal, LightGoal, PlaceGoal, parse_game, read_game
from had.envs.base import EnvFailure

EXPECTED_GOALS: dict[str, Goal] = {
    "pick_and_place_simple": PlaceGoal("cuptype", "drawertype"),
    "pick_clean_then_place_in_recep": PlaceGoal("appletype", "fridgetype", flag="isclean"),
    "pick_heat_then_place_in_recep": PlaceGoal("appletype", "countertoptype", flag="ishot"),
    "pick_cool_then_place_in_recep": PlaceGoal("appletype", "microwavetype", flag="iscool"),
    "pick_two_obj_and_place": PlaceGoal("appletype", "sinkbasintype", count=2),
    "look_at_obj_in_light": LightGoal("cuptype", "desklamptype"),
}


@pytest.mark.parametrize("task_type", list(GOALS))
def test_the_six_goals(task_type: str) -> None:
    game = parse_game(tiny_game(task_type), "tiny")
    assert game.goal == EXPECTED_GOALS[task_type]
    assert game.goal_sentence == f"do {task_type}."


def test_names_are_those_of_alfworlds_demangler() -> None:
    misc = pytest.importorskip("alfworld.agents.utils.misc")
    from textworld.generator.game import EntityInfo

    game = parse_game(tiny_game(), "tiny")
    infos = {identity: EntityInfo(identity, "thing") for identity in game.names}
    demangler = misc.Demangler(game_infos=infos)
    assert game.names == {identity: demangler.demangle_alfred_name(identity) for identity in infos}
    assert game.names["apple_bar_1"] == "apple 2"
    assert game.names["sink_bar_1_bar_sinkbasin"] == "sinkbasin 1"


def test_appliances_follow_the_domain_of_the_file() -> None:
    data = tiny_game()
    assert parse_game(data, "tiny").appliances == {
        "cleanobject": {"sinkbasintype"},
        "heatobject": {"microwavetype"},
        "coolobject": {"fridgetype"},
    }
    data["pddl_domain"] = str(data["pddl_domain"]).replace(
        ";(receptacleType ?r SinkType)", "(receptacleType ?r SinkType)"
    )
    assert parse_game(data, "tiny").appliances["cleanobject"] == {"sinkbasintype", "sinktype"}


def _damage(key: str, old: str, new: str) -> dict[str, object]:
    data = tiny_game()
    assert old in str(data[key])
    data[key] = str(data[key]).replace(old, new)
    return data


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([1], "holds a list"),
        ({"grammar": "", "pddl_problem": ""}, "no text under 'pddl_domain'"),
        (_damage("pddl_problem", "(:init", "(:unit"), r"without \(:objects …\), \(:init …\), \(:goal …\)"),
        (_damage("pddl_problem", "(:goal (and", "(:goal (and ("), r"'\('"),
        (_damage("pddl_problem", "(atLocation agent1 loc_bar_0)", ""), "one initial"),
        (
            _damage("pddl_problem", "(objectType ?o CupType) (rec", "(isHot ?o) (rec"),
            "none of ALFWorld's six",
        ),
        (_damage("pddl_domain", "(:action HeatObject", "(:action MeltObject"), r"actions \['heatobject'\]"),
        (_damage("grammar", "Your task is to:", "Do:"), "without a sentence that begins with"),
    ],
)
def test_a_malformed_file_is_named_with_its_fault(tmp_path: Path, data: object, message: str) -> None:
    path = tmp_path / "broken.tw-pddl"
    path.write_text(json.dumps(data))
    with pytest.raises(EnvFailure, match=message) as failure:
        read_game(path)
    assert str(path) in str(failure.value)


def test_a_missing_file_is_a_failure(tmp_path: Path) -> None:
    with pytest.raises(EnvFailure, match="No such file"):
        read_game(tmp_path / "nothing.tw-pddl")
