"""`NativeEnv`: ALFWorld's text games in plain Python, command for command what the TextWorld engine answers.

Several rules look odd because they are the engine's: lists are sorted by lower-cased PDDL id, `look` names an
object only after it has been taken from a place here, `use` always turns on, appliances need not be open, and
going to where one stands is refused. The differential test holds this simulator to the engine.
"""

from __future__ import annotations

from had.envs.alfworld import wording
from had.envs.alfworld.commands import TEMPLATES, Commands
from had.envs.alfworld.game import Game, malformed, read_game
from had.envs.alfworld.world import Situation, World
from had.envs.base import EnvFailure
from had.records import Effect, EnvState, EnvStep, Task


class NativeEnv:
    """A `TextEnv` over game files, without an engine, a subprocess or a cache."""

    def __init__(self) -> None:
        self._world: World | None = None

    def reset(self, task: Task) -> EnvStep:
        return self.reset_game(read_game(task.source))

    def reset_game(self, game: Game) -> EnvStep:
        """Start a game that has been read already.

        Raises:
            EnvFailure: the game's commands are worded differently (data of an older ALFWorld), or its facts
                do not fit together.
        """
        for action, template in TEMPLATES.items():
            found = game.templates.get(action)
            if found != template:
                raise EnvFailure(
                    f"{game.path}: the command of {action} is {found!r}, expected {template!r}. Are these "
                    "data of an older ALFWorld? Get new ones (`alfworld-download --force`), or use "
                    "env.backend=textworld"
                )
        self._world = None
        try:
            world = World(game)
            self._now, self._commands = Situation.start(world), Commands(world)
            self._note_possible_commands()
            observation = wording.describe_start(world, self._now)
        except (LookupError, ValueError, TypeError) as error:
            fault = f"{type(error).__name__}: {error}"
            raise malformed(game.path, f"holds facts that do not fit together ({fault})") from error
        self._world = world
        return self._answer(observation, Effect.CHANGED)

    def step(self, command: str) -> EnvStep:
        if self._world is None:
            raise EnvFailure("step() was called before reset(): start a task first")
        action = self._actions.get(command.strip())
        if action is None:
            return self._answer(wording.NOTHING_HAPPENS, Effect.NO_EFFECT)
        now = self._now
        before = (now.place, now.held, self._admissible)
        effect, arguments = action
        observation = effect(self._world, now, *arguments)
        self._note_possible_commands()
        is_changed = before != (now.place, now.held, self._admissible)
        return self._answer(observation, Effect.CHANGED if is_changed else Effect.INFORMATIONAL)

    def close(self) -> None:
        self._world = None

    def _note_possible_commands(self) -> None:
        self._actions = self._commands.possible(self._now)
        self._admissible = tuple(sorted(self._actions))

    def _answer(self, observation: str, effect: Effect) -> EnvStep:
        world, now = self._world, self._now
        assert world is not None
        is_won = world.is_won(now)
        return EnvStep(
            observation=observation,
            commands=self._admissible,
            state=EnvState(now.place, () if now.held is None else (world.names[now.held],), world.places),
            effect=effect,
            reward=float(is_won),
            score=100.0 * is_won,
            is_done=is_won,
            is_won=is_won,
        )
