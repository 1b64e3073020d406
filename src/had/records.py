"""The vocabulary of the project: tasks, turns, episodes, records and the labels a teacher gave.

Frozen dataclasses of the standard library only. Everything here is plain data, can be written as JSON and
is what the acting half (environments, harness, rollout, teachers) hands to the learning half.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from enum import StrEnum


@dataclass(frozen=True)
class Task:
    """One task of an environment.

    Attributes:
        id: unique and stable across machines, e.g. `household/train/0012`.
        split: `train`, `validation`, or the name of an evaluation split.
        type: the task type, e.g. `pick_and_place_simple`.
        goal: the task text as the agent reads it; empty where only the started world knows it.
        source: where the environment finds the task (a file path), or an empty string.
    """

    id: str
    split: str
    type: str
    goal: str
    source: str = ""


class Effect(StrEnum):
    """What a command did (spec section 4)."""

    CHANGED = "changed"  # the state key (location, held objects, admissible commands) changed
    INFORMATIONAL = "informational"  # accepted, but the state key stays: look, inventory, examine, heat…
    NO_EFFECT = "no_effect"  # refused by the environment, or rejected before it was executed


@dataclass(frozen=True)
class EnvState:
    """What the agent can know of its situation from its observations; the harness reads nothing else.

    Attributes:
        location: where the agent is, or None while it is nowhere in particular (the middle of the room).
        held: held objects, in the environment's order.
        places: every place that can be visited, in the order in which the environment lists them.
        details: tells states apart where the commands do not, since none are listed; compared, never shown.
    """

    location: str | None = None
    held: tuple[str, ...] = ()
    places: tuple[str, ...] = ()
    details: tuple[str, ...] = ()


@dataclass(frozen=True)
class EnvStep:
    """The answer of an environment to reset or to one command.

    Attributes:
        observation: the text that the environment shows.
        commands: admissible commands in the environment's order; empty where it shows none.
        state: the situation after the command.
        effect: what the command did; CHANGED after a reset.
        reward: the environment's own final-scale reward so far (ALFWorld 0/1, WebShop 0..1).
        score: score in the environment's published units (ALFWorld 0/100, WebShop 0..100, ScienceWorld
            -100..100).
        is_done: no further command is accepted.
        is_won: the task counts as a success.
        was_available: False where no commands are listed and the answer says that there was no such command.
        goal: after a reset, the task text of a task that did not hold it.
    """

    observation: str
    commands: tuple[str, ...]
    state: EnvState
    effect: Effect = Effect.CHANGED
    reward: float = 0.0
    score: float = 0.0
    is_done: bool = False
    is_won: bool = False
    was_available: bool = True
    goal: str = ""


@dataclass(frozen=True)
class VisitSummary:
    """One earlier visit of the current place: turns are 1-based and inclusive."""

    first_turn: int
    last_turn: int
    num_commands: int


@dataclass(frozen=True)
class HarnessFacts:
    """What the tracker knows at one turn, before the agent answers; the harness's parts put it into words.

    Attributes:
        turn: number of this turn, from 1.
        max_turns: turns that the episode may last.
        location, held, places: as in `EnvState`.
        visited: places visited so far (the current one included), in order of the first visit.
        visit_first_turn: turn at which the current visit began, or None when the agent is at no place.
        visit_num_commands: commands issued during the current visit.
        earlier_visits: the finished visits of the current place.
        failures: (command, count) of the commands that had no effect in this same state, at least once each.
        turns_without_new_state: turns since a state key was last seen for the first time.
    """

    turn: int
    max_turns: int
    location: str | None
    held: tuple[str, ...]
    places: tuple[str, ...]
    visited: tuple[str, ...]
    visit_first_turn: int | None
    visit_num_commands: int
    earlier_visits: tuple[VisitSummary, ...]
    failures: tuple[tuple[str, int], ...]
    turns_without_new_state: int

    @property
    def turns_left(self) -> int:
        """Turns that remain, this one included."""
        return self.max_turns - self.turn + 1


@dataclass(frozen=True)
class HarnessReport:
    """The warnings in force at one turn under the full harness, whatever the agent was shown.

    Attributes:
        is_urged: the budget urge is on.
        failures: the commands reported as having had no effect here, empty when nothing is reported.
        is_stalled: a stall is reported.
    """

    is_urged: bool = False
    failures: tuple[str, ...] = ()
    is_stalled: bool = False


class ParseFailure(StrEnum):
    """Why a reply has no command."""

    EMPTY = "empty"  # nothing but white space
    NO_ACTION = "no_action"  # no line begins with "Action:"
    EMPTY_ACTION = "empty_action"  # "Action:" with nothing behind it
    SEVERAL_ACTIONS = "several_actions"  # more than one "Action:" line
    UNALIGNED = "unaligned"  # one token holds both a part of the action and a part of what precedes it


@dataclass(frozen=True)
class Response:
    """One sampled reply, in token ids. Only labels of a teacher with another tokenizer are made from text.

    Attributes:
        ids: sampled token ids, the end-of-turn token included when it was sampled.
        logprobs: log-probability of each id under the policy that sampled it, at temperature 1; same length,
            or empty where the ids are not the ones that were sampled.
        text: the decoded reply, for people and for the parser.
        is_complete: the reply ended by itself (end-of-turn) and not at the token limit.
        action: the command, or None.
        failure: why there is no command, None when there is one.
        action_span: [start, end) of the action tokens in `ids`; (0, 0) when there is no command.
    """

    ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    text: str
    is_complete: bool
    action: str | None = None
    failure: ParseFailure | None = None
    action_span: tuple[int, int] = (0, 0)

    @property
    def reasoning_ids(self) -> tuple[int, ...]:
        """Everything before the action, `Thought:` and `Action:` included: the preference's context z_s."""
        return self.ids[: self.action_span[0]]

    @property
    def action_ids(self) -> tuple[int, ...]:
        """The scored action tokens: without `Action:` and without the end-of-turn token."""
        return self.ids[self.action_span[0] : self.action_span[1]]


@dataclass(frozen=True)
class Turn:
    """One observation and one response.

    Attributes:
        index: 0-based.
        observation, commands: what the environment showed before the response.
        facts: the tracker's facts before the response.
        report: the warnings in force before the response.
        harness_text: the harness text that the actor read; empty under the condition `off`.
        prompt_ids: the prompt that the actor read.
        response: the actor's reply.
        actor: `student` or `teacher`.
        is_available: the action is among the admissible commands (metric component *available*).
        is_in_grammar: the action is a command of the environment's grammar.
        is_misused: the action contradicts the reported situation: it uses an object that is not held, or asks
            for what is so already (metric component *situation* is violated).
        is_idle: the action is one of look, inventory, examine, help (metric component *budget*).
        is_blocked: the condition `hard_block` kept the action from being executed.
        effect: what the action did.
        is_new_state: the action led to a state key that is new to the episode.
        feedback: the observation that answered the action (the next turn's, where there is one).
    """

    index: int
    observation: str
    commands: tuple[str, ...]
    facts: HarnessFacts
    report: HarnessReport
    harness_text: str
    prompt_ids: tuple[int, ...]
    response: Response
    actor: str = "student"
    is_available: bool = False
    is_in_grammar: bool = False
    is_misused: bool = False
    is_idle: bool = False
    is_blocked: bool = False
    effect: Effect = Effect.NO_EFFECT
    is_new_state: bool = False
    feedback: str = ""

    @property
    def reply(self) -> str:
        """The text of the response, as later prompts show it."""
        return self.response.text.strip()


class EpisodeStatus(StrEnum):
    """How an episode ended. The failed ones are data: counted, logged, never silently dropped."""

    WON = "won"
    LOST = "lost"  # the environment ended the episode without success
    OUT_OF_TURNS = "out_of_turns"
    ENV_FAILED = "env_failed"  # the environment or its worker crashed or hung
    ENGINE_FAILED = "engine_failed"  # the engine could not answer (prompt longer than the context…)


@dataclass(frozen=True)
class Episode:
    """The turns of one task.

    Attributes:
        id: unique within a run, e.g. `r0003/household/train/0012`.
        status: how it ended; `message` explains a failure.
        score, reward: the environment's at the end.
        policy_version: the student's version that played.
        seed: the episode's own seed: wording of the harness, sampling.
    """

    id: str
    task: Task
    turns: tuple[Turn, ...]
    status: EpisodeStatus
    score: float = 0.0
    reward: float = 0.0
    policy_version: int = 0
    seed: int = 0
    message: str = ""

    @property
    def is_won(self) -> bool:
        return self.status is EpisodeStatus.WON

    @property
    def is_failed(self) -> bool:
        return self.status in (EpisodeStatus.ENV_FAILED, EpisodeStatus.ENGINE_FAILED)


class Verdict(StrEnum):
    """Result of the validity check of a command against the current record (spec section 5)."""

    VALID = "valid"
    UNPARSABLE = "unparsable"
    NOT_ADMISSIBLE = "not_admissible"
    NOT_HELD = "not_held"
    ALREADY_SO = "already_so"
    REPEATED_FAILURE = "repeated_failure"


@dataclass(frozen=True)
class TopKScores:
    """The teacher's most probable next tokens at each position of a given response.

    Attributes:
        ids: [T][K] token ids, most probable first.
        logprobs: [T][K] their log-probabilities under the full vocabulary, at temperature 1.
    """

    ids: tuple[tuple[int, ...], ...]
    logprobs: tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class CompactScores:
    """`TopKScores` in six bytes an entry, as records keep and carry them.

    A log-probability is rounded to 16 bits, by at most 2⁻¹¹ of its size: 0.0005 at -1, 0.005 at -10.

    Attributes:
        top_k: K, entries per token.
        ids: [T * K] token ids, 32-bit little-endian integers.
        logprobs: [T * K] log-probabilities, 16-bit little-endian floating-point numbers.
    """

    top_k: int
    ids: bytes
    logprobs: bytes

    @classmethod
    def of(cls, scores: TopKScores) -> CompactScores:
        """The scores, compact."""
        ids = [id for row in scores.ids for id in row]
        logprobs = [logprob for row in scores.logprobs for logprob in row]
        top_k = len(scores.ids[0]) if scores.ids else 0
        return cls(top_k, struct.pack(f"<{len(ids)}i", *ids), struct.pack(f"<{len(logprobs)}e", *logprobs))

    @property
    def num_tokens(self) -> int:
        """T, tokens of the response."""
        return len(self.ids) // (4 * self.top_k) if self.top_k else 0

    def unpack(self) -> TopKScores:
        """Rows of numbers again."""
        num, top_k = self.num_tokens * self.top_k, self.top_k
        ids = struct.unpack(f"<{num}i", self.ids)
        logprobs = struct.unpack(f"<{num}e", self.logprobs)
        starts = range(0, num, top_k or 1)
        return TopKScores(
            tuple(ids[start : start + top_k] for start in starts),
            tuple(logprobs[start : start + top_k] for start in starts),
        )


@dataclass(frozen=True)
class TeacherLabels:
    """What the teacher was asked at one visited state; a field is None when the method does not ask for it.

    Attributes:
        positive: response sampled from the with-harness view (y+).
        negative: response sampled from the without-harness view (y-).
        verdict: validity of the positive action.
        scores: the teacher's top-k scores on the student's own response.
        judgement: weight of this turn from a judge (SAGE-OPD).
        extra: further per-record numbers by name (reference log-probabilities…).
    """

    positive: Response | None = None
    negative: Response | None = None
    verdict: Verdict | None = None
    scores: CompactScores | None = None
    judgement: float | None = None
    extra: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Record:
    """One visited state with its labels: the unit of training.

    Attributes:
        id: unique within a run, e.g. `r0003/household/train/0012/t07`.
        episode_id, turn_index: where it comes from.
        relative_position: turn_index / number of turns of the episode, in [0, 1).
        round, policy_version: when and by which student it was visited.
        prompt_ids: the with-harness view x̃ that the student read.
        prompt_ids_without: the without-harness view x; empty when no label needs it.
        student: the student's own response at that turn.
        actor: who produced `student`: `student` or `teacher` (mixed acting).
        labels: what the teacher said.
    """

    id: str
    episode_id: str
    turn_index: int
    relative_position: float
    round: int
    policy_version: int
    prompt_ids: tuple[int, ...]
    prompt_ids_without: tuple[int, ...]
    student: Response
    labels: TeacherLabels
    actor: str = "student"
