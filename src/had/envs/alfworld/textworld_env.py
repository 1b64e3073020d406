"""`TextWorldEnv`: the same games in the real TextWorld engine, to which the native simulator is held.

The engine is used as it is, except that it remembers what it would compute anew from the same text: the
translation of a game (see `EngineMemory`) and the texts of its commands. One engine object serves all games,
because each new one loads its own copy of a shared library and never gives it back (2.2 MB a game). Not
thread-safe: the translator swaps sys.stdout, sys.argv and module globals.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import mementos.core
from alfworld.agents.utils.misc import Demangler
from textworld.core import EnvInfos
from textworld.envs.pddl import PddlEnv
from textworld.logic import Signature

from had.envs.alfworld.engine_memory import EngineMemory
from had.envs.alfworld.game import malformed, parse_game, read_game_data
from had.envs.alfworld.wording import NOTHING_HAPPENS
from had.envs.base import EnvFailure
from had.records import Effect, EnvState, EnvStep, Task


class _Engine(PddlEnv):
    """The stock engine with the players' names of the entities and with remembered command texts."""

    def load(self, filename_or_data: Any) -> None:
        # textworld.logic keeps every fact it ever made in here, 0.8 MB a game; facts are equal by value.
        mementos.core._memento_cache.clear()
        super().load(filename_or_data)
        demangler = Demangler(game_infos=self._entity_infos)
        for info in self._entity_infos.values():
            info.name = demangler.demangle_alfred_name(info.id)
        self._command_by_operator: dict[int, str] = {}

    def _gather_infos(self) -> None:
        state = self._pddl_state
        self.state["won"] = state.check_goal()
        self.state["lost"] = False
        self.state["_valid_actions"] = actions = state.all_applicable_actions()
        self.state["_valid_commands"] = commands = [self._command(action) for action in actions]
        self.state["admissible_commands"] = sorted(set(commands))

    def _command(self, action: Any) -> str:
        """The text of a command; what it depends on (names, standing places) never changes in a game."""
        text = self._command_by_operator.get(action.id)
        if text is None:
            infos = self._entity_infos
            context = {
                "state": self._pddl_state,
                "facts": [],
                "variables": {slot.name: infos[entity.name] for slot, entity in action.mapping.items()},
                "mapping": action.mapping,
                "entity_infos": infos,
            }
            action.command_template = self._logic.grammar.derive(action.command_template, context)
            text = action.format_command({identity: info.name for identity, info in infos.items()})
            self._command_by_operator[action.id] = text
        return text

    def rows(self, predicate: str, *types: str) -> list[tuple[str, ...]]:
        """The argument ids of a predicate's facts, in the engine's order."""
        facts = sorted(self._pddl_state.facts_with_signature(Signature(predicate, types)))
        return [tuple(argument.name for argument in fact.arguments) for fact in facts]

    def name(self, identity: str) -> str:
        """The name that the player reads."""
        return str(self._entity_infos[identity].name)


class TextWorldEnv:
    """A `TextEnv` over game files, played by the TextWorld engine."""

    def __init__(self) -> None:
        self._engine = _Engine(EnvInfos(admissible_commands=True, won=True))
        self._memory = EngineMemory()
        self._loaded: dict[str, object] = {}
        self._step: EnvStep | None = None

    def reset(self, task: Task) -> EnvStep:
        data = read_game_data(task.source)
        parse_game(data, task.source)  # the same complaints about a malformed file as the native simulator
        try:
            with self._memory.in_use():
                if data != self._loaded:
                    self._loaded = {}
                    self._engine.load(data)
                    self._loaded = data
                state = self._engine.reset()
        except (Exception, SystemExit) as error:  # the translator ends the process on a fault in the PDDL
            fault = f"{type(error).__name__}: {error}"
            raise malformed(task.source, f"cannot be started by TextWorld ({fault})") from error
        standing = self._engine.rows("receptacleatlocation", "receptacle", "location")
        start = self._engine.rows("atlocation", "agent", "location")[0][1]
        here = [self._engine.name(receptacle) for receptacle, location in standing if location == start]
        self._places = tuple(self._engine.name(receptacle) for receptacle, _ in standing)
        room = state.feedback.split("\n\n", 1)[1].rpartition("\n\n")[0]
        self._step = self._answer(state, room, Effect.CHANGED, here[0] if here else None)
        return self._step

    def step(self, command: str) -> EnvStep:
        before = self._step
        if before is None:
            raise EnvFailure("step() was called before reset(): start a task first")
        try:
            with self._memory.in_use():
                state, _, _ = self._engine.step(command)
        except Exception as error:
            raise EnvFailure(f"TextWorld failed at {command!r}: {type(error).__name__}: {error}") from error
        is_refused = state.feedback == NOTHING_HAPPENS
        place = before.state.location
        if command.strip().startswith("go to ") and not is_refused:
            place = command.strip().removeprefix("go to ")
        after = self._answer(state, state.feedback, Effect.NO_EFFECT, place)
        if not is_refused:
            is_changed = (after.commands, after.state) != (before.commands, before.state)
            after = replace(after, effect=Effect.CHANGED if is_changed else Effect.INFORMATIONAL)
        self._step = after
        return after

    def close(self) -> None:
        self._step = None

    def _answer(self, state: Any, observation: str, effect: Effect, place: str | None) -> EnvStep:
        held = tuple(self._engine.name(item) for _, item in self._engine.rows("holds", "agent", "object"))
        is_won = bool(state["won"])
        return EnvStep(
            observation=observation,
            commands=tuple(state["admissible_commands"]),
            state=EnvState(place, held, self._places),
            effect=effect,
            reward=float(is_won),
            score=100.0 * is_won,
            is_done=is_won,
            is_won=is_won,
        )
