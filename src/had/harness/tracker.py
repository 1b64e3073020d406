"""Keeps track of what happened in one episode, as `HarnessFacts`; it puts nothing into words."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from had.records import Effect, EnvState, EnvStep, HarnessFacts, VisitSummary

StateKey = tuple[str | None, tuple[str, ...], tuple[str, ...], tuple[str, ...]]


def state_key(step: EnvStep) -> StateKey:
    """The key of novelty and of "the same state": (location, held objects, admissible commands, details)."""
    return (step.state.location, step.state.held, step.commands, step.state.details)


@dataclass
class Tracker:
    """Follows one episode: `start` once, then `advance` after every turn; `facts` is what is known now.

    It reads the environment's answers and the agent's own commands: nothing that an agent could not know.

    Attributes:
        max_turns: turns that the episode may last.
    """

    max_turns: int
    _turn: int = 1
    _step: EnvStep | None = None
    _seen: set[StateKey] = field(default_factory=set)
    _failures: dict[StateKey, Counter[str]] = field(default_factory=dict)
    _visited: list[str] = field(default_factory=list)
    _visits: dict[str, list[VisitSummary]] = field(default_factory=dict)
    _visit_first_turn: int | None = None
    _visit_num_commands: int = 0
    _turns_without_new_state: int = 0

    def __post_init__(self) -> None:
        if self.max_turns < 1:
            raise ValueError(f"max_turns: expected >= 1, got {self.max_turns}")

    def start(self, step: EnvStep) -> HarnessFacts:
        """Begin with the answer to reset and return the facts of turn 1."""
        self._step = step
        self._seen = {state_key(step)}
        self._arrive(step.state.location)
        return self.facts()

    def advance(self, command: str | None, step: EnvStep) -> bool:
        """Take in one finished turn.

        Args:
            command: the agent's command, or None when its reply had none.
            step: the environment's answer; for a command that was not executed the previous answer, with
                `effect` NO_EFFECT.

        Returns:
            True when the state reached is new to the episode.
        """
        assert self._step is not None, "start() comes before advance()"
        before = self._step
        if command is not None and step.effect is Effect.NO_EFFECT:
            self._failures.setdefault(state_key(before), Counter())[command] += 1
        if command is not None:
            self._visit_num_commands += 1
        if step.state.location != before.state.location:
            self._leave(before.state.location)
            self._arrive(step.state.location, turn=self._turn + 1)
        key = state_key(step)
        is_new = key not in self._seen
        self._seen.add(key)
        self._turns_without_new_state = 0 if is_new else self._turns_without_new_state + 1
        self._turn += 1
        self._step = step
        return is_new

    def facts(self) -> HarnessFacts:
        """What is known before the agent answers at the current turn."""
        assert self._step is not None, "start() comes before facts()"
        state: EnvState = self._step.state
        at_place = state.location is not None
        return HarnessFacts(
            turn=self._turn,
            max_turns=self.max_turns,
            location=state.location,
            held=state.held,
            places=state.places,
            visited=tuple(self._visited),
            visit_first_turn=self._visit_first_turn if at_place else None,
            visit_num_commands=self._visit_num_commands if at_place else 0,
            earlier_visits=tuple(self._visits.get(state.location or "", ())),
            failures=tuple(self._failures.get(state_key(self._step), Counter()).items()),
            turns_without_new_state=self._turns_without_new_state,
        )

    def _arrive(self, location: str | None, turn: int = 1) -> None:
        self._visit_first_turn, self._visit_num_commands = turn, 0
        if location is not None and location not in self._visited:
            self._visited.append(location)

    def _leave(self, location: str | None) -> None:
        if location is not None and self._visit_first_turn is not None:
            summary = VisitSummary(self._visit_first_turn, self._turn, self._visit_num_commands)
            self._visits.setdefault(location, []).append(summary)
