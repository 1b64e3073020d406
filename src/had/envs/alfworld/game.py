"""Reads a `game.tw-pddl` file into a typed `Game`: entities, initial facts, goal, names, goal sentence."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from had.envs.base import EnvFailure

Facts = dict[str, list[tuple[str, ...]]]

_ATOM = re.compile(r"\(([^()]+)\)")
_TYPED_NAME = re.compile(r"(\S+)\s+-\s+(\w+)")
_GOAL_SENTENCE = re.compile(r'Your task is to:\s*((?:[^"\\]|\\.)*)"')
_TEMPLATE = re.compile(r'action (\w+) \{\s*template :: "([^"]*)"')
_APPLIANCE_ACTIONS = ("cleanobject", "heatobject", "coolobject")
_REMEDY = (
    "Get ALFWorld's games again (`alfworld-download --force`); a generated game is made again at the next "
    "start when its folder has been deleted"
)
_PAIRS = ("atlocation", "receptacleatlocation", "inreceptacle", "cancontain", "objecttype", "receptacletype")

# The predicates of the goals that ALFWorld's goal library writes, sorted; every other goal is refused.
_PLACE = ("inreceptacle", "objecttype", "receptacletype")
_PLACE_TWO = tuple(sorted(("=", *_PLACE, *_PLACE)))
_PREPARE = {
    flag: tuple(sorted((*_PLACE, ability, flag)))
    for ability, flag in (("cleanable", "isclean"), ("heatable", "ishot"), ("coolable", "iscool"))
}
_LIGHT = (
    *("atlocation", "holds", "inreceptacle", "istoggled", "objecttype", "objecttype"),
    *("receptacleatlocation", "toggleable"),
)


@dataclass(frozen=True)
class PlaceGoal:
    """`count` different objects of a type are in one receptacle of a type, each with `flag` (ishot…)."""

    object_type: str
    receptacle_type: str
    count: int = 1
    flag: str | None = None


@dataclass(frozen=True)
class LightGoal:
    """An object of a type is held where a toggled lamp of a type stands."""

    object_type: str
    lamp_type: str


Goal = PlaceGoal | LightGoal


@dataclass(frozen=True)
class Game:
    """One game; ids, predicates and types are lower-cased, as the planner does.

    Attributes:
        path: the file, for messages.
        types: entity id -> PDDL type (agent, object, receptacle, location, rtype, otype).
        facts: predicate -> argument tuples of the initial facts.
        goal: what must hold in the end.
        goal_sentence: the template goal, without "Your task is to:".
        names: entity id -> the name the player reads, such as "mug 1".
        appliances: action name -> receptacle types at which the domain allows it.
        templates: action name -> the template of its command, such as "take {o} from {r}".
        walkthrough: commands that win.
    """

    path: str
    types: dict[str, str]
    facts: Facts
    goal: Goal
    goal_sentence: str
    names: dict[str, str]
    appliances: dict[str, frozenset[str]]
    templates: dict[str, str]
    walkthrough: tuple[str, ...]


def malformed(path: str | Path, fault: str) -> EnvFailure:
    """The failure of a game whose file is not what it should be, with what to do about it."""
    return EnvFailure(f"the game file {path} {fault}. {_REMEDY}")


def read_game(path: str | Path) -> Game:
    """Read a game file.

    Raises:
        EnvFailure: the file is missing or no game of this format; the message names the file and the fault.
    """
    return parse_game(read_game_data(path), str(path))


def read_game_data(path: str | Path) -> dict[str, object]:
    """The JSON object of a game file, with the keys that a game needs.

    Raises:
        EnvFailure: see `read_game`.
    """
    try:
        data = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise malformed(path, f"cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise malformed(path, f"is not JSON (empty or cut short?): {error}") from error
    if not isinstance(data, dict):
        raise malformed(path, f"holds a {type(data).__name__}, expected a JSON object")
    for key in ("pddl_domain", "grammar", "pddl_problem"):
        if not isinstance(data.get(key), str):
            raise malformed(path, f"has no text under {key!r}; found the keys {sorted(data)}")
    return data


def parse_game(data: dict[str, object], path: str) -> Game:
    """Make a `Game` of a game file's JSON object.

    Raises:
        EnvFailure: see `read_game`.
    """
    objects, init, goal = _split_problem(str(data["pddl_problem"]).lower(), path)
    facts: Facts = {}
    for atom in _ATOM.findall(init):
        predicate, *arguments = atom.split()
        if predicate != "=":
            facts.setdefault(predicate, []).append(tuple(arguments))
    if wrong := [(name, *row) for name in _PAIRS for row in facts.get(name, ()) if len(row) != 2]:
        raise malformed(path, f"should hold facts about two things, got ({' '.join(wrong[0])})")
    starts = facts.get("atlocation", [])
    if len(starts) != 1:
        raise malformed(path, f"should hold one initial (atLocation agent place), got {starts}")
    grammar, domain = str(data["grammar"]), str(data["pddl_domain"])
    if missing := [name for name in _APPLIANCE_ACTIONS if f"(:action {name}" not in domain.lower()]:
        raise malformed(path, f"has a PDDL domain without the actions {missing}")
    walkthrough = data.get("walkthrough") or ()
    return Game(
        path=path,
        types=dict(_TYPED_NAME.findall(objects)),
        facts=facts,
        goal=_parse_goal(goal, path),
        goal_sentence=find_goal_sentence(grammar, path),
        names=name_entities({argument for rows in facts.values() for row in rows for argument in row}),
        appliances=_find_appliances(domain),
        templates=dict(_TEMPLATE.findall(grammar)),
        walkthrough=tuple(walkthrough) if isinstance(walkthrough, list) else (),
    )


def find_goal_sentence(grammar: str, path: str) -> str:
    """The template goal of a game's grammar.

    Raises:
        EnvFailure: the grammar has no "Your task is to:" sentence.
    """
    match = _GOAL_SENTENCE.search(grammar)
    if match is None:
        raise malformed(path, "has a grammar without a sentence that begins with 'Your task is to:'")
    try:
        return str(json.loads(f'"{match.group(1)}"')).strip()
    except ValueError as error:
        raise malformed(path, f"has a goal sentence that cannot be read: {error}") from error


def name_entities(ids: Iterable[str]) -> dict[str, str]:
    """Names as ALFWorld's AlfredDemangler gives them: type and number, the highest number to the first id."""
    names = {}
    left: Counter[str] = Counter()
    pairs = [(identity, _type_word(identity)) for identity in sorted(ids)]
    left.update(word for identity, word in pairs if "_bar_" in identity)
    for identity, word in pairs:
        if "_bar_" in identity:
            names[identity] = f"{word} {left[word]}"
            left[word] -= 1
        else:
            names[identity] = f"{word} "
    return names


def _type_word(identity: str) -> str:
    """`sink_bar_…_sinkbasin` -> `sinkbasin`, `mug_bar_…` -> `mug`."""
    word, bar, _ = identity.partition("_bar_")
    return word + "basin" if bar and "basin" in identity else word


def _split_problem(problem: str, path: str) -> tuple[str, str, str]:
    """The texts of the objects, the initial facts and the goal of a lower-cased PDDL problem."""
    problem = re.sub(r";[^\n]*", "", problem)
    at_objects, at_init, at_goal = (problem.find(word) for word in ("(:objects", "(:init", "(:goal"))
    if not 0 <= at_objects < at_init < at_goal:
        raise malformed(path, "has a PDDL problem without (:objects …), (:init …), (:goal …) in this order")
    num_opened, num_closed = problem.count("("), problem.count(")")
    if num_opened != num_closed:
        raise malformed(path, f"has a PDDL problem with {num_opened} '(' but {num_closed} ')'")
    return problem[at_objects + len("(:objects") : at_init], problem[at_init:at_goal], problem[at_goal:]


def _parse_goal(goal: str, path: str) -> Goal:
    """Recognise the six goal forms by their atoms; variable names, nesting and white space do not matter."""
    atoms = [atom.split() for atom in _ATOM.findall(goal) if not atom.lstrip().startswith("?")]
    predicates = tuple(sorted(atom[0] for atom in atoms))
    object_types = [atom[-1] for atom in atoms if atom[0] == "objecttype"]
    receptacle_types = [atom[-1] for atom in atoms if atom[0] == "receptacletype"]
    if predicates == _LIGHT:
        toggled = next(atom[1] for atom in atoms if atom[0] == "istoggled")
        lamp_types = [atom[-1] for atom in atoms if atom[0] == "objecttype" and atom[1] == toggled]
        other_types = [atom[-1] for atom in atoms if atom[0] == "objecttype" and atom[1] != toggled]
        if len(lamp_types) == len(other_types) == 1:
            return LightGoal(other_types[0], lamp_types[0])
    if predicates == _PLACE:
        return PlaceGoal(object_types[0], receptacle_types[0])
    if predicates == _PLACE_TWO and len(set(object_types)) == len(set(receptacle_types)) == 1:
        return PlaceGoal(object_types[0], receptacle_types[0], count=2)
    for flag, form in _PREPARE.items():
        if predicates == form:
            return PlaceGoal(object_types[0], receptacle_types[0], flag=flag)
    raise malformed(path, f"has a goal of none of ALFWorld's six forms; its conditions are {predicates}")


@lru_cache(maxsize=8)
def _find_appliances(domain: str) -> dict[str, frozenset[str]]:
    """Which receptacle types clean, heat and cool in this domain (some versions also clean at SinkType)."""
    domain = re.sub(r";[^\n]*", "", domain).lower()
    appliances = {}
    for action in _APPLIANCE_ACTIONS:
        _, _, body = domain.partition(f"(:action {action}")
        body = body.partition("(:action")[0]
        appliances[action] = frozenset(re.findall(r"\(receptacletype \?r (\w+)\)", body))
    return appliances
