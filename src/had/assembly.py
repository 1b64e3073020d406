"""The composition root: builds what a configuration names and connects it. Only src/*.py imports it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from lightning import Callback, LightningModule, Trainer
from omegaconf import DictConfig

from had.acting import ActingHalf
from had.callbacks.engine_sleep import SleepWhileTraining
from had.callbacks.evaluation import EvaluationCallback
from had.callbacks.run_summary import run_summary
from had.callbacks.run_tables import RunTables
from had.data.collector import Collector
from had.data.datamodule import RoundDataModule
from had.data.record_dump import RecordDump
from had.data.replay import ReplayBuffer
from had.engines.base import SamplingParams
from had.engines.usage import EngineMeter
from had.models.model_files import ModelFiles
from had.models.sharding import Placement, full_state_dict, unsharded_copy
from had.models.student import save_hf
from had.module import DistillationModule
from had.prompts.render import end_of_turn_id
from had.rollout.actor import Actor
from had.runtime.files import write_json
from had.runtime.instantiate import as_plain, build, target_of
from had.runtime.output import failures
from had.runtime.ranks import is_first, of_first
from had.runtime.resume import Start, find_start, take_over
from had.runtime.stop import StopRequest
from had.teachers.labeler import Labeler
from had.teachers.reencoding import (
    KeptIds,
    LabelReader,
    ReencodedText,
    needs_shared_tokenizer,
    vocabulary_difference,
)
from had.teachers.teacher import Teacher

INITIAL_STUDENT = "initial_student"  # whom a question may ask besides the teacher
FALLBACK = "python src/train.py experiment=had_household   (two CPU cores, no download)"


@dataclass
class Assembly:
    """A training run: everything that one configuration describes, built on first use.

    Attributes:
        config: the whole configuration (see configs/train.yaml).
    """

    config: DictConfig

    @cached_property
    def acting(self) -> ActingHalf:
        """What plays."""
        return ActingHalf(self.config)

    @property
    def folder(self) -> Path:
        """The run folder."""
        return self.acting.folder

    # checks before anything heavy is loaded

    def problems(self) -> list[str]:
        """What stands in the way of training: data, models, devices, values. No model is loaded."""
        acting, env = self.acting, self.config.env
        return failures(
            [
                lambda: self.start,
                lambda: acting.check_device(self.config.trainer.accelerator),
                lambda: acting.student_files.locate(),
                lambda: acting.teacher_files.locate(),
                lambda: acting.student_renderer,
                lambda: acting.teacher_renderer,
                lambda: acting.check_context(acting.student_files),
                lambda: acting.check_context(acting.teacher_files),
                self._check_tokenizers,
                lambda: acting.check_tasks(env.train_split, env.validation_split, *acting.eval_splits),
                acting.check_harness,
                self._check_method,
                self._check_sizes,
            ]
        )

    @cached_property
    def start(self) -> Start:
        """From where the run begins."""
        return find_start(self.config.resume, self.folder, as_plain(self.config))

    def _check_tokenizers(self) -> None:
        """Where the tokenizers differ, nothing but text may go from one model to the other."""
        acting = self.acting
        student, teacher = acting.student_files, acting.teacher_files
        difference = vocabulary_difference(
            acting.student_renderer.tokenizer, acting.teacher_renderer.tokenizer
        )
        if difference is None:
            return
        method = self.config.method
        parts = [build(node) for node in method.questions]
        classes = [type(part) for part in parts if needs_shared_tokenizer(part)]
        if method.actor is not None and needs_shared_tokenizer(target_of(method.actor)):
            classes.append(target_of(method.actor))
        if classes:
            raise ValueError(
                f"tokenizers: {', '.join(sorted(kind.__name__ for kind in classes))} of method {method.name} "
                f"hands token ids from one model to the other, so student ({student.path}) and teacher "
                f"({teacher.path}) must share one vocabulary; found {difference}. Take a teacher of the "
                "student's family, or a method that needs the teacher's text only (method=had, method=sopd)"
            )
        if isinstance(self.label_reader, ReencodedText):
            self.label_reader.check()

    def _check_method(self) -> None:
        method = self.config.method
        for node in (*method.questions, *method.layouts, *method.losses, method.balance, self.config.faults):
            build(node)

    def _check_sizes(self) -> None:
        if self.config.trainer.max_steps < 1:
            raise ValueError(
                f"trainer.max_steps: expected >= 1 optimizer updates, got {self.config.trainer.max_steps}; "
                "to evaluate without training take src/evaluate.py"
            )
        self._buffer()

    # between the halves

    @cached_property
    def training_actor(self) -> Actor:
        """Who acts while training (the method decides)."""
        temperature = self.config.data.temperature
        student = self.acting.actor(temperature)
        if self.config.method.actor is None:
            return student
        teacher = self.acting.actor(temperature, self.acting.teacher_engine, "teacher")
        return build(self.config.method.actor, student=student, teacher=teacher)

    @cached_property
    def label_reader(self) -> LabelReader:
        """How the teacher's answers become labels in the student's token ids."""
        teacher, student = self.acting.teacher_renderer, self.acting.student_renderer
        is_shared = vocabulary_difference(student.tokenizer, teacher.tokenizer) is None
        reader = KeptIds if is_shared else ReencodedText
        return reader(teacher, student, end_of_turn_id(student.tokenizer))

    @cached_property
    def labeler(self) -> Labeler:
        """What the teacher is asked."""
        acting = self.acting
        sampling = SamplingParams(self.config.teacher.temperature, self.config.env.max_reply_tokens)
        teacher = Teacher(acting.teacher_engine, acting.teacher_renderer, sampling, reader=self.label_reader)
        questions = [build(node) for node in self.config.method.questions]
        others = {}
        if any(question.asks == INITIAL_STUDENT for question in questions):
            frozen = acting.engine("student")  # never hears of new weights
            others[INITIAL_STUDENT] = Teacher(frozen, acting.student_renderer, sampling, INITIAL_STUDENT)
        return Labeler(teacher, questions, acting.student_renderer, others)

    @property
    def meter(self) -> EngineMeter:
        """Counts what the engines do."""
        others = [other.engine for other in self.labeler.others.values()]
        return EngineMeter([self.acting.student_engine, self.acting.teacher_engine, *others])

    # the learning half

    def _buffer(self) -> ReplayBuffer:
        data, seed = self.config.data, self.config.seed
        return ReplayBuffer(data.batch_size, data.max_policy_lag, data.updates_per_round, seed)

    @cached_property
    def datamodule(self) -> RoundDataModule:
        """Collects the rounds."""
        data = self.config.data
        collector = Collector(
            self.acting.tasks(self.config.env.train_split),
            self.acting.player(),
            self.training_actor,
            self.labeler,
            self.config.harness.condition,
            data.tasks_per_round,
            self.config.seed,
            self.acting.on_phase,
            self.meter,
        )
        layouts = [build(node) for node in self.config.method.layouts]
        dump = RecordDump(self.folder / "records") if data.dump_records else None
        pad_id = self.acting.student_renderer.pad_id
        return RoundDataModule(collector, self._buffer(), layouts, data.max_tokens, pad_id, dump)

    @cached_property
    def module(self) -> DistillationModule:
        """The student and how it is trained."""
        method, optimizer = self.config.method, self.config.optimizer
        return DistillationModule(
            self.placement.prepare(self._trained_files.model()),
            [build(node) for node in method.losses],
            build(method.balance),
            build(optimizer.optimizer),
            build(optimizer.scheduler),
            optimizer.max_grad_norm,
            self.placement,
            build(self.config.faults),
        )

    @cached_property
    def placement(self) -> Placement:
        """How the student lies in memory while it trains."""
        return build(self.config.placement)

    @property
    def _trained_files(self) -> ModelFiles:
        """The student in the type of the weights that are trained, whatever type it plays in."""
        return replace(self.acting.student_files, dtype=self.placement.weights)

    # the run

    def origins(self) -> dict[str, dict[str, str | None]]:
        """Where the weights of both models come from."""
        return {"student": self.acting.student_files.origin(), "teacher": self.acting.teacher_files.origin()}

    @cached_property
    def evaluation(self) -> EvaluationCallback:
        """Evaluation before, during and after training."""
        acting, options, env = self.acting, self.config.evaluation, self.config.env
        validation = None
        if options.num_validation_tasks and env.validation_split:
            validation = acting.evaluator([env.validation_split], ["full"], options.num_validation_tasks)
        return EvaluationCallback(
            acting.evaluator(acting.eval_splits, options.conditions, options.num_tasks),
            validation,
            options.every_num_updates,
            self.folder / "eval.csv",
            save_best=lambda module: self.save(module, "best"),
            is_resumed=self.start.checkpoint is not None,
            watch=self.tables.watches["evaluate"],
        )

    @cached_property
    def tables(self) -> RunTables:
        """The CSV files of the run."""
        columns = list(self.config.method.columns)
        return RunTables(self.folder, columns, bottleneck=build(self.config.bottleneck))

    def callbacks(self, stop: StopRequest | None = None) -> list[Callback]:
        """In the order in which they must run."""
        acting, config, watches = self.acting, self.config, self.tables.watches
        engine, probe = acting.student_engine, acting.probe
        sync = build(config.weight_sync, engine=engine, probe=probe, watch=watches["sync"])
        checkpoints = build(config.checkpoints, stop=stop, watch=watches["save"])
        sleep = SleepWhileTraining([acting.student_engine, acting.teacher_engine])
        return [sync, self.tables, acting.transcripts, checkpoints, self.evaluation, sleep]

    def trainer(self, stop: StopRequest | None = None) -> Trainer:
        """The Lightning trainer; one epoch is one round."""
        if self.start.checkpoint is not None and is_first():
            take_over(self.start.checkpoint, self.folder)
        return build(self.config.trainer, callbacks=self.callbacks(stop), logger=self.loggers() or False)

    def loggers(self) -> list[Any]:
        """The loggers of the configuration, besides the CSV files that are always written."""
        return [build(node) for node in (self.config.get("logger") or {}).values()]

    def save(self, module: LightningModule, name: str) -> Path:
        """Write the student as a Hugging Face folder `student/<name>`; must be called on every rank."""
        model: Any = module.model
        folder = self.folder / "student" / name
        with self.tables.watches["save"].running():
            weights = full_state_dict(model)
            if is_first():
                save_hf(unsharded_copy(model, weights), self.acting.student_renderer.tokenizer, folder)
        return folder

    def conclude(self, trainer: Trainer) -> None:
        """What the end of training did already, unless no update was left to take."""
        self.tables.on_train_end(trainer, self.module)
        self.evaluation.on_train_end(trainer, self.module)

    def finish(self, trainer: Trainer) -> None:
        """Save the last student, which is the best where none was validated, and write `summary.json`.

        Must be called on every rank.
        """
        self.save(self.module, "last")
        if not of_first((self.folder / "student" / "best").exists()):
            self.save(self.module, "best")
        if not is_first():
            return
        identity = {"method": self.config.method.name, "env": self.config.env.name, "seed": self.config.seed}
        summary = run_summary(identity, trainer.global_step, self.evaluation, self.tables, self.datamodule)
        write_json(self.folder / "summary.json", summary)
