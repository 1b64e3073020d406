"""Ways in which a game file is damaged in practice, and what the message must say about each."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from had.records import Task

Damage = Callable[[str], str]  # the text of a good game file -> that of a damaged one


def _with(**changes: object) -> Damage:
    return lambda text: json.dumps(json.loads(text) | changes)


def _without_facts(text: str) -> str:
    """The list of initial facts ends after its first line: well-formed, but where is the agent?"""
    data = json.loads(text)
    head, init, rest = data["pddl_problem"].partition("(:init")
    data["pddl_problem"] = head + init + "\n(= (total-cost) 0))\n(:goal" + rest.partition("(:goal")[2]
    return json.dumps(data)


def _with_longer_fact(text: str) -> str:
    """A fact with an argument too many."""
    data = json.loads(text)
    data["pddl_problem"] = data["pddl_problem"].replace("(receptacleType ", "(receptacleType more ", 1)
    return json.dumps(data)


def _with_foreign_goal(text: str) -> str:
    """A goal that ALFWorld does not have."""
    data = json.loads(text)
    head = data["pddl_problem"].partition("(:goal")[0]
    data["pddl_problem"] = f"{head}(:goal (and (forall (?o - object) (isClean ?o)))))"
    return json.dumps(data)


# name: (damage, words of the message)
DAMAGES: dict[str, tuple[Damage, str]] = {
    "empty": (lambda text: "", "is not JSON"),
    "cut short": (lambda text: text[: len(text) // 2], "is not JSON"),
    "a page of a web server": (lambda text: "<html>404 Not Found</html>", "is not JSON"),
    "zeros": (lambda text: "\0" * len(text), "is not JSON"),
    "another JSON type": (lambda text: "[1, 2]", "holds a list"),
    "other keys": (lambda text: '{"game": "chess"}', "no text under 'pddl_domain'"),
    "no problem": (_with(pddl_problem=None), "no text under 'pddl_problem'"),
    "another problem": (_with(pddl_problem="(define (problem x))"), "(:objects"),
    "another domain": (_with(pddl_domain="(define (domain x))"), "without the actions ['cleanobject'"),
    "another grammar": (_with(grammar="grammar :: nothing"), "Your task is to:"),
    "no facts": (_without_facts, "one initial (atLocation agent place), got []"),
    "a longer fact": (_with_longer_fact, "(receptacletype more "),
    "a foreign goal": (_with_foreign_goal, "none of ALFWorld's six forms"),
}


def damage(path: Path, name: str) -> None:
    """Spoil a game file in one of the ways of `DAMAGES`."""
    path.write_text(DAMAGES[name][0](path.read_text(encoding="utf-8")), encoding="utf-8")


def write_alfworld(tasks: Sequence[Task], root: Path) -> list[Path]:
    """Lay games out as ALFWorld's data, all in the folder of the split `train`; the game files."""
    files = []
    for number, task in enumerate(tasks):
        folder = root / "json_2.1.1" / "train" / f"{task.type}-Mug-None-Desk-1" / f"trial_{number}"
        folder.mkdir(parents=True)
        files.append(Path(shutil.copyfile(task.source, folder / "game.tw-pddl")))
        (folder / "traj_data.json").write_text(json.dumps({"task_type": task.type}))
    return files
