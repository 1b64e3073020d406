"""The teacher: one engine behind its own renderer, with a count of everything it was asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from had.engines.base import Engine, EngineFailure, SamplingParams
from had.prompts.render import Renderer
from had.prompts.views import View
from had.records import Response, TopKScores
from had.teachers.state import VisitedState


@dataclass
class TeacherUsage:
    """What the teacher was asked since the start of the run (budgets are compared by it).

    Attributes:
        queries: sampled answers.
        tokens_generated: tokens of these answers.
        tokens_scored: tokens whose probabilities were asked for.
        failures: requests without an answer.
    """

    queries: int = 0
    tokens_generated: int = 0
    tokens_scored: int = 0
    failures: int = 0


@dataclass
class Teacher:
    """Answers and scores.

    Attributes:
        engine: the teacher model.
        renderer: its chat format; responses are read with its tokenizer.
        sampling: temperature 1.0 in the paper.
    """

    engine: Engine
    renderer: Renderer
    sampling: SamplingParams
    usage: TeacherUsage = field(default_factory=TeacherUsage)

    def answer(self, states: Sequence[VisitedState], view: View, salt: int) -> list[Response | None]:
        """One sampled answer per state from a view; None where the engine failed.

        Args:
            states: what to answer.
            view: which view of the history the teacher reads.
            salt: answers with different salts are independent.
        """
        prompts = [state.prompt(self.renderer, view) for state in states]
        asked = [index for index, prompt in enumerate(prompts) if prompt is not None]
        seeds = [states[index].seed ^ (0x9E3779B9 * (salt + 1) & 0xFFFFFFFF) for index in asked]
        results = self.engine.generate([prompts[index] or () for index in asked], self.sampling, seeds)
        answers: list[Response | None] = [None] * len(states)
        for index, result in zip(asked, results, strict=True):
            if not isinstance(result, EngineFailure):
                answers[index] = self.renderer.response(result.ids, result.logprobs, result.is_complete)
                self.usage.tokens_generated += len(result.ids)
        self.usage.queries += len(states)
        self.usage.failures += sum(answer is None for answer in answers)
        return answers

    def scores(self, states: Sequence[VisitedState], view: View, top_k: int) -> list[TopKScores | None]:
        """Top-k next-token log-probabilities on the student's own responses; None where the prompt is too long."""
        prompts = [state.prompt(self.renderer, view) for state in states]
        asked = [index for index, prompt in enumerate(prompts) if prompt is not None]
        responses = [states[index].turn.response.ids for index in asked]
        results = self.engine.score([prompts[index] or () for index in asked], responses, top_k)
        scores: list[TopKScores | None] = [None] * len(states)
        for index, result in zip(asked, results, strict=True):
            scores[index] = result
        self.usage.tokens_scored += sum(len(response) for response in responses)
        self.usage.failures += len(states) - len(asked)
        return scores

    def logprobs(
        self, states: Sequence[VisitedState], view: View, continuations: Sequence[Sequence[int]], start: Sequence[int]
    ) -> list[float | None]:
        """Summed log-probability of the tails `continuations[i][start[i]:]` after the state and their heads."""
        prompts = [state.prompt(self.renderer, view) for state in states]
        asked = [index for index, prompt in enumerate(prompts) if prompt is not None]
        tails = [continuations[index][start[index] :] for index in asked]
        heads = [(*(prompts[index] or ()), *continuations[index][: start[index]]) for index in asked]
        results = self.engine.logprobs(heads, tails)
        sums: list[float | None] = [None] * len(states)
        for index, result in zip(asked, results, strict=True):
            sums[index] = float(sum(result))
        self.usage.tokens_scored += sum(len(tail) for tail in tails)
        self.usage.failures += len(states) - len(asked)
        return sums
