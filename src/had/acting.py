"""The composition root of what plays: models, tasks, harness. Only assembly and src/*.py import it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from omegaconf import DictConfig, OmegaConf

from had.callbacks.evaluation import EVAL_COLUMNS, Evaluator, result_rows
from had.callbacks.transcripts import Transcripts
from had.callbacks.weight_sync import Probe
from had.data.collector import PhaseHook
from had.engines.base import Engine, SamplingParams
from had.harness.compose import Harness
from had.harness.conditions import Condition, get_condition
from had.models.model_files import ModelFiles
from had.prompts.render import Renderer, check_thinking_off, end_of_turn_id
from had.prompts.views import SYSTEM
from had.records import Task
from had.rollout.actor import EngineActor
from had.rollout.player import Player
from had.runtime.files import CsvAppender, write_json
from had.runtime.instantiate import build, target_of

PROBE_STATE = "Your task is to: put a clean mug on the desk.\n\nYou are in the middle of a room."
PROBE_REPLY = (
    "Thought: The mug may be in the cabinet or on the counter; I look there first, clean it in the sink, and "
    "carry it to the desk. If I see no mug, I go on to the shelf and the drawer.\nAction: go to cabinet 1"
)


@dataclass
class ActingHalf:
    """What plays: built from a configuration on first use and shared from then on.

    Attributes:
        config: needs the groups env, harness, prompt, engine and evaluation, the models that are used
            (`student.files`, `teacher.files`), `paths` and `seed`.
        on_phase: progress hook (phase, done, total).
    """

    config: DictConfig
    on_phase: PhaseHook = lambda phase, done, total: None

    def check_tasks(self, *splits: str | None) -> None:
        """Find the tasks of some splits (None: no split).

        Raises:
            FileNotFoundError: the games are missing.
            ValueError: there is no such split, or it is empty.
        """
        for split in splits:
            if split is not None and not self.tasks(split):
                raise ValueError(f"split {split!r} of env {self.config.env.name} has no tasks")

    def check_device(self, *more: str) -> None:
        """Refuse engines that are not installed, and engines (and `more` devices) on a GPU that is not there.

        Raises:
            RuntimeError: what an engine runs on is not installed, or torch finds no GPU.
        """
        for engine in self.config.engine.values():
            check = getattr(target_of(engine), "check_installed", None)
            if check is not None:
                check()
        # engines on servers have no device here
        wanted = {engine.get("device") for engine in self.config.engine.values()} | {*more}
        if wanted & {"gpu", "cuda"} and not torch.cuda.is_available():
            raise RuntimeError(
                "device: this experiment wants a CUDA GPU, torch finds none; "
                "take a machine with GPUs (and a CUDA build of torch), or trainer=cpu engine=hf_cpu with a "
                "small model"
            )

    def check_harness(self) -> None:
        """Build what is said and when; raises ValueError."""
        build(self.config.prompt)
        self.harness  # noqa: B018
        for name in (self.config.harness.condition, *self.config.evaluation.conditions):
            get_condition(name)

    @cached_property
    def student_files(self) -> ModelFiles:
        """Where the student comes from."""
        return build(self.config.student.files)

    @cached_property
    def teacher_files(self) -> ModelFiles:
        """Where the teacher comes from."""
        return build(self.config.teacher.files)

    @cached_property
    def _task_source(self) -> Any:
        return build(self.config.env.tasks)

    def tasks(self, split: str, limit: int | None = None) -> Sequence[Task]:
        """The tasks of a split; the first `limit` of them."""
        return list(self._task_source.tasks(split))[:limit]

    @property
    def eval_splits(self) -> list[str]:
        """The splits that evaluation plays."""
        return list(self.config.evaluation.splits or self.config.env.eval_splits)

    @cached_property
    def harness(self) -> Harness:
        """What is reported to the agent."""
        keys = [key for key in self.config.harness if key != "condition"]
        return build(OmegaConf.masked_copy(self.config.harness, keys))

    @cached_property
    def condition(self) -> Condition:
        """The condition under which the student plays while it trains."""
        return get_condition(self.config.harness.condition)

    def renderer(self, files: ModelFiles) -> Renderer:
        """The chat format of a model.

        Raises:
            ValueError: the tokenizer has no chat template, one that does not end replies by a token of its
                own, or one that lets replies begin by thinking.
        """
        tokenizer = files.tokenizer()
        room = self.config.env.max_context_tokens - self.config.env.max_reply_tokens
        renderer = Renderer(tokenizer, build(self.config.prompt), room, self._end_ids(files, tokenizer))
        check_thinking_off(tokenizer)
        return renderer

    @staticmethod
    def _end_ids(files: ModelFiles, tokenizer: Any) -> frozenset[int]:
        """Ids that end a reply: the template's end of turn, the end of a text, and the model's own."""
        if getattr(tokenizer, "chat_template", None) is None:
            return frozenset()  # the renderer says so
        known = {end_of_turn_id(tokenizer), tokenizer.eos_token_id} | files.stop_ids()
        return frozenset(known - {None})

    @cached_property
    def student_renderer(self) -> Renderer:
        """The student's chat format."""
        return self.renderer(self.student_files)

    @cached_property
    def teacher_renderer(self) -> Renderer:
        """The teacher's chat format."""
        return self.renderer(self.teacher_files)

    def check_context(self, files: ModelFiles) -> None:
        """Compare the environment's context limit with what a model can read.

        Raises:
            ValueError: the model's is shorter.
        """
        limit, wanted = files.max_positions(), self.config.env.max_context_tokens
        if limit is not None and limit < wanted:
            raise ValueError(
                f"model {files.path!r}: env {self.config.env.name} wants a context of {wanted} tokens, the "
                f"model reads {limit}; set env.max_context_tokens={limit} (long histories then lose their "
                "oldest turns), or take another model"
            )

    @cached_property
    def grammar(self) -> Any:
        """The environment's command grammar."""
        return build(self.config.env.grammar)

    def player(self, num_slots: int | None = None) -> Player:
        """Plays episodes, `num_slots` at once."""
        make_env = build(self.config.env.make_env)
        slots = {} if num_slots is None else {"num_slots": num_slots}
        pool = build(self.config.env.pool, make_env=make_env, **slots)
        return Player(pool, self.grammar, self.harness, self.student_renderer, self.config.env.max_turns)

    def engine(self, role: str) -> Engine:
        """A new engine of a role (`student` or `teacher`) with the weights that its files hold."""
        renderer: Renderer = getattr(self, f"{role}_renderer")
        return build(
            self.config.engine[role],
            model=getattr(self, f"{role}_files"),
            eos_ids=sorted(renderer.end_ids),
            max_context_tokens=self.config.env.max_context_tokens,
        )

    @cached_property
    def student_engine(self) -> Engine:
        """The engine that plays for the student."""
        return self.engine("student")

    @cached_property
    def probe(self) -> Probe:
        """A text on which the trained student and its engine are compared."""
        renderer = self.student_renderer
        messages = [{"role": "user", "content": f"{SYSTEM}\n\n{PROBE_STATE}"}]
        reply_ids = renderer.tokenizer.encode(PROBE_REPLY, add_special_tokens=False)
        return Probe(renderer.encode(messages), reply_ids)

    @cached_property
    def teacher_engine(self) -> Engine:
        """The engine that answers for the teacher."""
        return self.engine("teacher")

    def actor(self, temperature: float, engine: Engine | None = None, name: str = "student") -> EngineActor:
        """A model that plays at a temperature; the student by default."""
        sampling = SamplingParams(temperature, self.config.env.max_reply_tokens)
        return EngineActor(engine or self.student_engine, self.student_renderer, sampling, name)

    @cached_property
    def folder(self) -> Path:
        """The run folder."""
        return Path(self.config.paths.output_dir)

    @cached_property
    def transcripts(self) -> Transcripts:
        """Writes episodes for people."""
        return Transcripts(self.folder / "transcripts", self.config.evaluation.transcripts_per_round)

    def evaluator(
        self, splits: Sequence[str], conditions: Sequence[str], limit: int | None = None
    ) -> Evaluator:
        """The student plays splits under conditions, at the evaluation temperature."""
        options = self.config.evaluation
        tasks = {split: self.tasks(split, limit) for split in splits}
        evaluator = Evaluator(
            self.player(options.num_slots),
            self.actor(options.temperature),
            tasks,
            list(conditions),
            self.config.seed,
            self.transcripts,
        )
        evaluator.on_phase = self.on_phase
        return evaluator

    def evaluate(self) -> None:
        """Play all splits under all conditions; write `eval.csv` and a `summary.json` without a "before"."""
        options = self.config.evaluation
        evaluator = self.evaluator(self.eval_splits, options.conditions, options.num_tasks)
        results = evaluator.run("after")
        CsvAppender(self.folder / "eval.csv", EVAL_COLUMNS).append(*result_rows(0, results))
        write_json(
            self.folder / "summary.json",
            {
                "method": "saved student",
                "checkpoint": self.config.student.files.path,
                "env": self.config.env.name,
                "seed": self.config.seed,
                "updates": 0,
                "before": {},
                "after": results,
                "seconds": {"evaluate": round(evaluator.seconds, 2)},
            },
        )
