"""The composition root: builds what a configuration names and connects it. Only src/*.py imports it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from lightning import Callback, LightningModule, Trainer
from omegaconf import DictConfig

from had.acting import ActingHalf
from had.callbacks.checkpoints import RoundCheckpoint
from had.callbacks.evaluation import EvaluationCallback
from had.callbacks.run_tables import RunTables
from had.callbacks.weight_sync import WeightSync
from had.data.collector import Collector
from had.data.datamodule import RoundDataModule
from had.data.record_dump import RecordDump
from had.data.replay import ReplayBuffer
from had.engines.base import SamplingParams
from had.models.student import save_hf
from had.module import DistillationModule
from had.rollout.actor import Actor
from had.runtime.files import write_json
from had.runtime.instantiate import build
from had.runtime.output import failures
from had.runtime.resume import check_checkpoint, check_unused, take_over
from had.teachers.labeler import Labeler
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
                self._check_folder,
                lambda: acting.check_device(self.config.trainer.accelerator),
                lambda: acting.student_files.locate(),
                lambda: acting.teacher_files.locate(),
                self._check_tokenizers,
                lambda: acting.check_tasks(env.train_split, env.validation_split, *acting.eval_splits),
                acting.check_harness,
                self._check_method,
                self._check_sizes,
            ]
        )

    def _check_folder(self) -> None:
        if self.config.resume:
            check_checkpoint(self.config.resume, self.config.trainer.max_steps)
        else:
            check_unused(self.folder)

    def _check_tokenizers(self) -> None:
        student, teacher = self.acting.student_files, self.acting.teacher_files
        try:
            is_shared = student.tokenizer().get_vocab() == teacher.tokenizer().get_vocab()
        except FileNotFoundError:
            return  # reported as a missing model already
        if not is_shared:
            raise ValueError(
                f"tokenizers: expected student ({student.path}) and teacher ({teacher.path}) to share one, "
                "since labels are token ids of the student; found two vocabularies. Take a pair of one family"
            )

    def _check_method(self) -> None:
        method = self.config.method
        for node in (*method.questions, *method.layouts, *method.losses, method.balance):
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
    def labeler(self) -> Labeler:
        """What the teacher is asked."""
        acting = self.acting
        sampling = SamplingParams(self.config.teacher.temperature, self.config.env.max_reply_tokens)
        teacher = Teacher(acting.teacher_engine, acting.renderer(acting.teacher_files), sampling)
        questions = [build(node) for node in self.config.method.questions]
        others = {}
        if any(question.asks == INITIAL_STUDENT for question in questions):
            frozen = acting.engine(acting.student_files, "student")  # never hears of new weights
            others[INITIAL_STUDENT] = Teacher(frozen, acting.student_renderer, sampling, INITIAL_STUDENT)
        return Labeler(teacher, questions, acting.student_renderer, others)

    # the learning half

    def _buffer(self) -> ReplayBuffer:
        data = self.config.data
        return ReplayBuffer(data.batch_size, data.max_policy_lag, data.updates_per_round, self.config.seed)

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
        )
        layouts = [build(node) for node in self.config.method.layouts]
        dump = RecordDump(self.folder / "records") if data.dump_records else None
        pad_id = self.acting.student_renderer.tokenizer.pad_token_id
        return RoundDataModule(collector, self._buffer(), layouts, data.max_tokens, pad_id, dump)

    @cached_property
    def module(self) -> DistillationModule:
        """The student and how it is trained."""
        method, optimizer = self.config.method, self.config.optimizer
        return DistillationModule(
            self.acting.student_files.model().train(),
            [build(node) for node in method.losses],
            build(method.balance),
            build(optimizer.optimizer),
            build(optimizer.scheduler),
            optimizer.max_grad_norm,
        )

    # the run

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
        )

    @cached_property
    def tables(self) -> RunTables:
        """The CSV files of the run."""
        return RunTables(self.folder, list(self.config.method.columns))

    def callbacks(self) -> list[Callback]:
        """In the order in which they must run."""
        checkpoints = RoundCheckpoint(self.folder / "checkpoints")
        sync = WeightSync(self.acting.student_engine)
        return [sync, self.tables, self.acting.transcripts, self.evaluation, checkpoints]

    def trainer(self) -> Trainer:
        """The Lightning trainer; one epoch is one round."""
        if self.config.resume:
            take_over(self.config.resume, self.folder)
        return build(self.config.trainer, callbacks=self.callbacks(), logger=self.loggers() or False)

    def loggers(self) -> list[Any]:
        """The loggers of the configuration, besides the CSV files that are always written."""
        nodes = self.config.get("logger") or {}
        return [build(node) for node in nodes.values()]

    def save(self, module: LightningModule, name: str) -> Path:
        """Write the student as a Hugging Face folder `student/<name>`."""
        model: Any = module.model
        return save_hf(model, self.acting.student_renderer.tokenizer, self.folder / "student" / name)

    def finish(self, trainer: Trainer) -> None:
        """Save the last student, which is the best where none was validated, and write `summary.json`."""
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
                "differences": self.evaluation.differences,
                "seconds": {name: round(value, 2) for name, value in seconds.items()},
                "teacher": dict(vars(self.labeler.teacher.usage)),
                "disagreement": self.tables.disagreement.compute(),
            },
        )
