"""`Slots`: several text worlds side by side in one process; whatever one does, an answer comes back."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from had.envs.base import EnvFailure, TextEnv
from had.records import EnvStep, Task

Answers = dict[int, EnvStep | EnvFailure]


class Slots:
    """Environments by slot, made when a slot is first used.

    Args:
        make_env: makes one environment; what it raises is raised: a wrong configuration, no failed episode.
    """

    def __init__(self, make_env: Callable[[], TextEnv]) -> None:
        self._make_env = make_env
        self._envs: dict[int, TextEnv] = {}
        self._playing: set[int] = set()

    def reset(self, tasks: Mapping[int, Task]) -> Answers:
        """Start an episode in each given slot."""
        return {slot: self._reset(slot, task) for slot, task in tasks.items()}

    def step(self, commands: Mapping[int, str]) -> Answers:
        """Execute one command in each given slot."""
        return {slot: self._step(slot, command) for slot, command in commands.items()}

    def close(self) -> None:
        """Close all environments."""
        for env in self._envs.values():
            env.close()
        self._envs.clear()
        self._playing.clear()

    def _reset(self, slot: int, task: Task) -> EnvStep | EnvFailure:
        self._playing.discard(slot)
        if slot not in self._envs:
            self._envs[slot] = self._make_env()
        try:
            answer = self._envs[slot].reset(task)
        except EnvFailure as failure:
            return failure
        except Exception as error:  # a bug of a backend costs one episode, not the run
            place = f" at the start of {task.id}" + (f" ({task.source})" if task.source else "")
            return self._give_up(slot, error, place)
        self._playing.add(slot)
        return answer

    def _step(self, slot: int, command: str) -> EnvStep | EnvFailure:
        if slot not in self._playing:
            return EnvFailure(f"slot {slot} plays no episode; reset it first")
        try:
            return self._envs[slot].step(command)
        except EnvFailure as failure:
            self._playing.discard(slot)
            return failure
        except Exception as error:
            return self._give_up(slot, error)

    def _give_up(self, slot: int, error: Exception, place: str = "") -> EnvFailure:
        """Forget the environment of a slot, for nobody knows its state now."""
        self._playing.discard(slot)
        self._envs.pop(slot)
        return EnvFailure(f"the environment crashed{place}: {type(error).__name__}: {error}")
