"""One episode in progress: the environment's last answer, the tracker, and the turns so far."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from had.envs.base import CommandGrammar
from had.harness.compose import Harness
from had.harness.conditions import Condition
from had.harness.tracker import Tracker
from had.harness.validity import EXPLANATIONS, check_command, is_admissible, is_misused
from had.prompts.views import BLOCKED_OBSERVATION, NO_COMMAND_OBSERVATION, Shown
from had.records import Effect, EnvStep, Episode, EpisodeStatus, Task, Turn, Verdict
from had.rollout.actor import Answer


@dataclass
class Game:
    """Mutable state of one episode.

    Attributes:
        task, seed, max_turns: what is played.
        harness, condition, grammar: how it is reported and judged.
        turns: finished turns.
    """

    task: Task
    seed: int
    max_turns: int
    harness: Harness
    condition: Condition
    grammar: CommandGrammar
    turns: list[Turn] = field(default_factory=list)
    _step: EnvStep | None = None
    _tracker: Tracker | None = None
    _pending: Turn | None = None

    def start(self, step: EnvStep) -> None:
        """Begin with the environment's answer to reset."""
        self._step, self._tracker = step, Tracker(self.max_turns)
        if step.goal:
            self.task = replace(self.task, goal=step.goal)
        self._tracker.start(step)

    def shown(self) -> Shown:
        """The state to be answered now, as the actor sees it."""
        assert self._step is not None and self._tracker is not None
        text = self.harness.text(self._tracker.facts(), self.seed, self.condition)
        return Shown(self._step.observation, self._step.commands, text)

    def answer(self, prompt_ids: tuple[int, ...], shown: Shown, answer: Answer) -> str | None:
        """Take the actor's answer; returns the command to execute, or None when there is none to execute."""
        assert self._step is not None and self._tracker is not None
        facts, command = self._tracker.facts(), answer.response.action
        verdict = check_command(command, self._step.commands, facts, self.grammar)
        is_in_grammar = command is not None and self.grammar.accepts(command)
        self._pending = Turn(
            index=len(self.turns),
            observation=self._step.observation,
            commands=self._step.commands,
            facts=facts,
            report=self.harness.report(facts),
            harness_text=shown.harness_text,
            prompt_ids=prompt_ids,
            response=answer.response,
            actor=answer.actor,
            is_available=command is not None and is_admissible(command, self._step.commands, self.grammar),
            is_in_grammar=is_in_grammar,
            is_misused=command is not None and is_misused(command, facts, self.grammar),
            is_idle=command is not None and self.grammar.is_idle(command),
            is_blocked=self.condition.is_blocking and verdict not in (Verdict.VALID, Verdict.UNPARSABLE),
        )
        if command is None:
            self._finish_unexecuted(NO_COMMAND_OBSERVATION)
            return None
        if self._pending.is_blocked:
            self._finish_unexecuted(BLOCKED_OBSERVATION.format(reason=EXPLANATIONS[verdict]))
            return None
        return command

    def executed(self, step: EnvStep) -> None:
        """Take the environment's answer to the command that `answer` returned."""
        self._finish_turn(step)

    def _finish_unexecuted(self, told: str) -> None:
        assert self._step is not None
        answer = replace(self._step, observation=told, effect=Effect.NO_EFFECT, was_available=True)
        self._finish_turn(answer)

    def _finish_turn(self, step: EnvStep) -> None:
        assert self._pending is not None and self._tracker is not None
        is_new = self._tracker.advance(self._pending.response.action, step)
        self.turns.append(
            replace(
                self._pending,
                is_available=self._pending.is_available and step.was_available,
                effect=step.effect,
                is_new_state=is_new,
                feedback=step.observation,
            )
        )
        self._pending, self._step = None, step

    @property
    def status(self) -> EpisodeStatus | None:
        """How the episode ended, or None while it goes on."""
        assert self._step is not None
        if self._step.is_won:
            return EpisodeStatus.WON
        if self._step.is_done:
            return EpisodeStatus.LOST
        return EpisodeStatus.OUT_OF_TURNS if len(self.turns) >= self.max_turns else None

    def episode(
        self, episode_id: str, policy_version: int, status: EpisodeStatus, message: str = ""
    ) -> Episode:
        """The finished episode."""
        step = self._step
        return Episode(
            id=episode_id,
            task=self.task,
            turns=tuple(self.turns),
            status=status,
            score=step.score if step is not None else 0.0,
            reward=step.reward if step is not None else 0.0,
            policy_version=policy_version,
            seed=self.seed,
            message=message,
        )
