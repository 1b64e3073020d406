"""The composition root: builds the pieces that a configuration names and connects them. Only src/*.py imports it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from lightning import Callback, LightningModule, Trainer
from lightning.pytorch.callbacks import ModelCheckpoint
from omegaconf import DictConfig, OmegaConf

from had.callbacks.evaluation import EvaluationCallback, Evaluator
from had.callbacks.run_tables import RunTables
from had.callbacks.transcripts import Transcripts
from had.callbacks.weight_sync import WeightSync
from had.data.collector import Collector, PhaseHook
from had.data.datamodule import RoundDataModule
from had.data.record_dump import RecordDump
from had.data.replay import ReplayBuffer
from had.engines.base import Engine, SamplingParams
from had.harness.compose import Harness
from had.harness.conditions import Condition, get_condition
from had.models.model_files import ModelFiles
from had.models.student import save_hf
from had.module import DistillationModule
from had.prompts.render import Renderer
from had.records import Task
from had.rollout.actor import Actor, EngineActor
from had.rollout.player import Player
from had.runtime.files import write_json
from had.runtime.instantiate import build
from had.teachers.labeler import Labeler
from had.teachers.teacher import Teacher

FALLBACK = "python src/train.py experiment=had_household   (two CPU cores, no download)"


@dataclass
class Assembly:
    """Everything that one configuration describes, built on first use and shared from then on.

    Attributes:
        config: the whole configuration (see configs/train.yaml).
        on_phase: progress hook (phase, done, total).
    """

    config: DictConfig
    on_phase: PhaseHook = lambda phase, done, total: None

    # checks before anything heavy is loaded

    def problems(self) -> list[str]:
        """What is missing for this configuration: data, models, devices. Nothing is loaded."""
        found = []
        checks: list[Callable[[], Any]] = [self._check_device, self.student_files.locate, self.teacher_files.locate]
        env = self.config.env
        splits = [split for split in (env.train_split, env.validation_split, *env.eval_splits) if split]
        checks += [lambda split=split: self.tasks(split) for split in splits]  # type: ignore[misc]
        for check in checks:
            try:
                check()
            except (FileNotFoundError, ValueError, RuntimeError) as error:
                found.append(str(error))
        return list(dict.fromkeys(found))

    def _check_device(self) -> None:
        wanted = {self.config.trainer.accelerator, *(engine.device for engine in self.config.engine.values())}
        if wanted & {"gpu", "cuda"} and not torch.cuda.is_available():
            raise RuntimeError(
                "device: this experiment wants a CUDA GPU, torch finds none; "
                "take a machine with GPUs (and a CUDA build of torch), or trainer=cpu with a small model"
            )

    # the acting half

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

    @cached_property
    def harness(self) -> Harness:
        """What is reported to the agent."""
        node = OmegaConf.masked_copy(self.config.harness, [key for key in self.config.harness if key != "condition"])
        return build(node)

    @cached_property
    def condition(self) -> Condition:
        """The condition under which the student plays while it trains."""
        return get_condition(self.config.harness.condition)

    def renderer(self, files: ModelFiles) -> Renderer:
        """The chat format of a model."""
        tokenizer = files.tokenizer()
        room = self.config.env.max_context_tokens - self.config.env.max_reply_tokens
        return Renderer(tokenizer, build(self.config.prompt), room, frozenset([tokenizer.eos_token_id]))

    @cached_property
    def student_renderer(self) -> Renderer:
        """The student's chat format."""
        return self.renderer(self.student_files)

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

    def engine(self, files: ModelFiles, role: str) -> Engine:
        """The engine of a role (`student` or `teacher`) with the weights of `files`."""
        tokenizer_end = files.tokenizer().eos_token_id
        context = self.config.env.max_context_tokens
        return build(
            self.config.engine[role], model=files.model(), eos_ids=[tokenizer_end], max_context_tokens=context
        )

    @cached_property
    def student_engine(self) -> Engine:
        """The engine that plays for the student."""
        return self.engine(self.student_files, "student")

    @cached_property
    def teacher_engine(self) -> Engine:
        """The engine that answers for the teacher."""
        return self.engine(self.teacher_files, "teacher")

    def actor(self, temperature: float, engine: Engine | None = None, name: str = "student") -> EngineActor:
        """A model that plays at a temperature; the student by default."""
        sampling = SamplingParams(temperature, self.config.env.max_reply_tokens)
        return EngineActor(engine or self.student_engine, self.student_renderer, sampling, name)

    @cached_property
    def training_actor(self) -> Actor:
        """Who acts while training (the method decides)."""
        student = self.actor(self.config.data.temperature)
        if self.config.method.actor is None:
            return student
        teacher = self.actor(self.config.data.temperature, self.teacher_engine, "teacher")
        return build(self.config.method.actor, student=student, teacher=teacher)

    @cached_property
    def labeler(self) -> Labeler:
        """What the teacher is asked."""
        sampling = SamplingParams(self.config.teacher.temperature, self.config.env.max_reply_tokens)
        teacher = Teacher(self.teacher_engine, self.renderer(self.teacher_files), sampling)
        questions = [build(node) for node in self.config.method.questions]
        return Labeler(teacher, questions, self.student_renderer)

    # the learning half

    @cached_property
    def datamodule(self) -> RoundDataModule:
        """Collects the rounds."""
        data, seed = self.config.data, self.config.seed
        tasks = self.tasks(self.config.env.train_split)
        collector = Collector(
            tasks, self.player(), self.training_actor, self.labeler, self.condition, data.tasks_per_round, seed,
            self.on_phase,
        )  # fmt: skip
        buffer = ReplayBuffer(data.batch_size, data.max_policy_lag, data.updates_per_round, seed)
        layouts = [build(node) for node in self.config.method.layouts]
        dump = RecordDump(self.folder / "records") if data.dump_records else None
        pad_id = self.student_renderer.tokenizer.pad_token_id
        return RoundDataModule(collector, buffer, layouts, data.max_tokens, pad_id, dump)

    @cached_property
    def module(self) -> DistillationModule:
        """The student and how it is trained."""
        method, optimizer = self.config.method, self.config.optimizer
        return DistillationModule(
            self.student_files.model(),
            [build(node) for node in method.losses],
            build(method.balance),
            build(optimizer.optimizer),
            build(optimizer.scheduler),
            optimizer.max_grad_norm,
        )

    # evaluation and output

    @cached_property
    def folder(self) -> Path:
        """The run folder."""
        return Path(self.config.paths.output_dir)

    @cached_property
    def transcripts(self) -> Transcripts:
        """Writes episodes for people."""
        return Transcripts(self.folder / "transcripts", self.config.evaluation.transcripts_per_round)

    def evaluator(self, splits: Sequence[str], conditions: Sequence[str], limit: int | None, actor: Actor) -> Evaluator:
        """Plays splits under conditions."""
        tasks = {split: self.tasks(split, limit) for split in splits}
        player = self.player(self.config.evaluation.num_slots)
        evaluator = Evaluator(player, actor, tasks, list(conditions), self.config.seed, self.transcripts)
        evaluator.on_phase = self.on_phase
        return evaluator

    @cached_property
    def evaluation(self) -> EvaluationCallback:
        """Evaluation before, during and after training."""
        options, env = self.config.evaluation, self.config.env
        actor = self.actor(options.temperature)
        final = self.evaluator(options.splits or env.eval_splits, options.conditions, options.num_tasks, actor)
        validation = None
        if options.num_validation_tasks and env.validation_split:
            validation = self.evaluator([env.validation_split], ["full"], options.num_validation_tasks, actor)
        return EvaluationCallback(
            final, validation, options.every_num_updates, self.folder / "eval.csv", lambda module: self.save(module, "best")
        )

    @cached_property
    def tables(self) -> RunTables:
        """The CSV files of the run."""
        return RunTables(self.folder, list(self.config.method.columns))

    def callbacks(self) -> list[Callback]:
        """In the order in which they must run."""
        checkpoints = ModelCheckpoint(
            self.folder / "checkpoints", filename="update_{step:06d}", auto_insert_metric_name=False,
            every_n_epochs=1, save_on_train_epoch_end=True, save_last=True, save_top_k=1,
        )  # fmt: skip
        return [WeightSync(self.student_engine), self.tables, self.transcripts, self.evaluation, checkpoints]

    def trainer(self) -> Trainer:
        """The Lightning trainer; one epoch is one round."""
        return build(self.config.trainer, callbacks=self.callbacks(), logger=self.loggers() or False)

    def loggers(self) -> list[Any]:
        """The loggers of the configuration, besides the CSV files that are always written."""
        nodes = self.config.get("logger") or {}
        return [build(node) for node in nodes.values()]

    def save(self, module: LightningModule, name: str) -> Path:
        """Write the student as a Hugging Face folder `student/<name>`."""
        model: Any = module.model
        return save_hf(model, self.student_renderer.tokenizer, self.folder / "student" / name)

    def finish(self, trainer: Trainer) -> None:
        """Save the last student (and take it for the best where none was validated) and write `summary.json`."""
        self.save(self.module, "last")
        if not (self.folder / "student" / "best").exists():
            self.save(self.module, "best")
        seconds = {
            **self.datamodule.seconds,
            "train": self.tables.seconds,
            "evaluate": self.evaluation.seconds,
        }
        write_json(
            self.folder / "summary.json",
            {
                "method": self.config.method.name,
                "env": self.config.env.name,
                "seed": self.config.seed,
                "updates": trainer.global_step,
                "before": self.evaluation.before,
                "after": self.evaluation.after,
                "seconds": {name: round(value, 2) for name, value in seconds.items()},
                "teacher": dict(vars(self.labeler.teacher.usage)),
            },
        )
