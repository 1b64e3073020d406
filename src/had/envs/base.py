"""What every environment offers: tasks, a text world to act in, and the grammar of its commands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from had.records import EnvStep, HarnessFacts, Task


class EnvFailure(RuntimeError):
    """An environment, or the worker that ran it, could not go on; the episode becomes a counted failure."""


class TextEnv(Protocol):
    """One text world. Not thread-safe; one episode at a time; reused for many episodes."""

    def reset(self, task: Task) -> EnvStep:
        """Start `task`. The observation does not hold the task text (`task.goal`, or the step's goal).

        Raises:
            EnvFailure: the task cannot be started (a malformed file, a crashed engine).
        """

    def step(self, command: str) -> EnvStep:
        """Execute one command; any string is accepted, an impossible command has no effect."""

    def close(self) -> None:
        """Release processes and files; harmless when called twice."""


class TaskSource(Protocol):
    """The tasks of an environment by split, in a fixed order."""

    def tasks(self, split: str) -> Sequence[Task]:
        """All tasks of a split.

        Raises:
            ValueError: unknown split (the message lists the known ones).
            FileNotFoundError: the data are missing (the message says where they were expected and how to get
                them).
        """


class CommandGrammar(Protocol):
    """What can be said of a command from its text alone, for the validity check and the metrics."""

    def accepts(self, command: str) -> bool:
        """True when the command has the form of a command of this environment, admissible or not."""

    def is_listed(self, command: str, commands: Sequence[str]) -> bool:
        """True when the command is one of the admissible commands that the environment listed."""

    def required_object(self, command: str) -> str | None:
        """The object that the command uses and that must be held, or None."""

    def is_idle(self, command: str) -> bool:
        """True for commands that only inform (look, inventory, examine, help)."""


@runtime_checkable
class SituationGrammar(CommandGrammar, Protocol):
    """A grammar that also knows which commands the reported situation makes pointless, whatever the task."""

    def is_already_so(self, command: str, facts: HarnessFacts) -> bool:
        """True when the command would only bring about what the record says is so already."""


class EnvPool(Protocol):
    """Many text worlds played side by side; slot i plays one episode at a time."""

    @property
    def num_slots(self) -> int:
        """How many episodes can be played at once."""

    def reset(self, tasks: dict[int, Task]) -> dict[int, EnvStep | EnvFailure]:
        """Start an episode in each given slot; a failure is returned, not raised, for its slots."""

    def step(self, commands: dict[int, str]) -> dict[int, EnvStep | EnvFailure]:
        """Execute one command in each given slot.

        A slot whose worker hung or died gets an EnvFailure and must be reset.
        """

    def close(self) -> None:
        """End all workers."""
