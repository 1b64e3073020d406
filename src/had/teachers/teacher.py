"""The teacher: one engine behind its own renderer, with a count of everything it was asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from had.engines.base import Engine, EngineFailure, Generation, SamplingParams
from had.prompts.render import Renderer
from had.prompts.views import Message, View
from had.records import CompactScores, Episode, Response
from had.teachers.reencoding import LabelReader
from had.teachers.state import VisitedState

# Scores leave the engine as Python numbers, 70 bytes each: only so many states wait for being made compact.
SCORED_STATES_AT_ONCE = 64

ReplyRun = tuple[Sequence[int], Sequence[int]]  # (beginning of a reply, the run that is scored after it)


@dataclass
class TeacherUsage:
    """What the teacher was asked since the start of the run (budgets are compared by it).

    Attributes:
        queries: sampled answers: labels, judgements, and the turns that it played itself.
        tokens_generated: tokens of these answers.
        tokens_scored: tokens whose probabilities were asked for.
        failures: requests without an answer.
        unreadable: answers that the student's tokens cannot express (tokenizers that differ), no labels.
    """

    queries: int = 0
    tokens_generated: int = 0
    tokens_scored: int = 0
    failures: int = 0
    unreadable: int = 0


@dataclass
class Teacher:
    """Answers and scores. A frozen student can be asked in the same way.

    Attributes:
        engine: the teacher model.
        renderer: its chat format.
        sampling: temperature 1.0 in the paper.
        name: recorded as the actor of the turns that it plays.
        reader: makes labels, in the student's token ids, of what it sampled; by default its renderer, which
            keeps the ids and is right for a student with the same tokenizer and end of turn.
    """

    engine: Engine
    renderer: Renderer
    sampling: SamplingParams
    name: str = "teacher"
    usage: TeacherUsage = field(default_factory=TeacherUsage)
    reader: LabelReader | None = None

    def answer(
        self, states: Sequence[VisitedState], view: View, salt: int, temperature: float | None = None
    ) -> list[Response | None]:
        """One sampled answer per state from a view, in the student's token ids.

        None where the engine failed or the student's tokens cannot express the answer.

        Args:
            states: what to answer.
            view: which view of the history the teacher reads.
            salt: answers with different salts are independent.
            temperature: in place of the usual one.
        """
        prompts = [state.prompt(self.renderer, view) for state in states]
        sampling = self.sampling if temperature is None else replace(self.sampling, temperature=temperature)
        seeds = [state.seed ^ (0x9E3779B9 * (salt + 1) & 0xFFFFFFFF) for state in states]
        return [None if it is None else self._label(it) for it in self._generate(prompts, sampling, seeds)]

    def _label(self, sampled: Generation) -> Response | None:
        reader = self.reader or self.renderer
        label = reader.response(sampled.ids, sampled.logprobs, sampled.is_complete)
        self.usage.unreadable += label is None
        return label

    def reply(
        self, chats: Sequence[Sequence[Message] | None], sampling: SamplingParams, seeds: Sequence[int]
    ) -> list[str | None]:
        """The text of its reply to each chat; None where there is no chat or the engine failed."""
        prompts = [None if chat is None else tuple(self.renderer.encode(list(chat))) for chat in chats]
        return [
            None if it is None else self.renderer.response(it.ids, it.logprobs, it.is_complete).text
            for it in self._generate(prompts, sampling, seeds)
        ]

    def _generate(
        self, prompts: Sequence[tuple[int, ...] | None], sampling: SamplingParams, seeds: Sequence[int]
    ) -> list[Generation | None]:
        asked = [index for index, prompt in enumerate(prompts) if prompt is not None]
        results = self.engine.generate(
            [prompts[index] or () for index in asked], sampling, [seeds[index] for index in asked]
        )
        generations: list[Generation | None] = [None] * len(prompts)
        for index, result in zip(asked, results, strict=True):
            if not isinstance(result, EngineFailure):
                generations[index] = result
                self.usage.tokens_generated += len(result.ids)
        self.usage.queries += len(asked)
        self.usage.failures += sum(generation is None for generation in generations)
        return generations

    def scores(self, states: Sequence[VisitedState], view: View, top_k: int) -> list[CompactScores | None]:
        """Top-k next-token log-probabilities on the student's responses; None where these are too long."""
        scores: list[CompactScores | None] = []
        for start in range(0, len(states), SCORED_STATES_AT_ONCE):
            scores += self._scores(states[start : start + SCORED_STATES_AT_ONCE], view, top_k)
        return scores

    def _scores(self, states: Sequence[VisitedState], view: View, top_k: int) -> list[CompactScores | None]:
        responses = [state.turn.response.ids for state in states]
        asked, prompts = self._that_fit(states, view, [((), response) for response in responses])
        scored = [responses[index] for index in asked]
        scores: list[CompactScores | None] = [None] * len(states)
        for index, result in zip(asked, self.engine.score(prompts, scored, top_k), strict=True):
            scores[index] = CompactScores.of(result)
        self.usage.tokens_scored += sum(map(len, scored))
        return scores

    def logprobs(
        self, states: Sequence[VisitedState], view: View, runs: Sequence[ReplyRun]
    ) -> list[float | None]:
        """Log-probability, summed over its tokens, of a run after a state and a beginning of the reply.

        Args:
            states: one state per run.
            view: which view of the history the teacher reads.
            runs: (beginning of the reply, scored run) in token ids.

        Returns:
            Natural logarithms; None where prompt and run are too long.
        """
        asked, contexts = self._that_fit(states, view, runs)
        scored = [runs[index][1] for index in asked]
        sums: list[float | None] = [None] * len(states)
        for index, result in zip(asked, self.engine.logprobs(contexts, scored), strict=True):
            sums[index] = float(sum(result))
        self.usage.tokens_scored += sum(map(len, scored))
        return sums

    def _that_fit(
        self, states: Sequence[VisitedState], view: View, runs: Sequence[ReplyRun]
    ) -> tuple[list[int], list[tuple[int, ...]]]:
        """Indices and contexts of the runs that fit into the engine's context; the others are failures."""
        asked, contexts = [], []
        for index, (state, (beginning, run)) in enumerate(zip(states, runs, strict=True)):
            prompt = state.prompt(self.renderer, view)
            context = None if prompt is None else (*prompt, *beginning)
            if context is not None and len(context) + len(run) <= self.engine.max_context_tokens:
                asked.append(index)
                contexts.append(context)
        self.usage.failures += len(states) - len(asked)
        return asked, contexts

    def note_played(self, episodes: Sequence[Episode]) -> None:
        """Count the turns that it played itself (mixed acting)."""
        played = [turn for episode in episodes for turn in episode.turns if turn.actor == self.name]
        self.usage.queries += len(played)
        self.usage.tokens_generated += sum(len(turn.response.ids) for turn in played)
