"""Runs of seconds: two tiny models, a hundred games, and the real configuration with small numbers."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import lightning
import torch
from hydra import compose, initialize_config_dir

from had.assembly import Assembly
from had.data.collector import Round
from had.data.packing import pack
from had.envs.alfworld.simulator import NativeEnv
from had.envs.household.source import HouseholdTasks
from had.models.student import save_hf
from had.models.tiny import make_qwen3
from had.pretraining.tokenizer import build_tokenizer
from had.prompts.views import PromptFormat
from had.records import Record, Turn

ROOT = Path(__file__).resolve().parents[2]
SHAPE = {"hidden": 16, "layers": 1, "heads": 2, "kv_heads": 1, "head_dim": 8, "intermediate": 32}
NUM_UPDATES = 3
os.environ.setdefault("HAD_ROOT", str(ROOT))


@dataclass(frozen=True)
class World:
    """Where the tiny student and teacher and the games are."""

    student: Path
    teacher: Path
    games: Path

    def overrides(self, folder: Path) -> list[str]:
        """What makes a run of three updates out of an experiment on small household games."""
        engines = [
            item
            for role in ("student", "teacher")
            for item in (
                f"engine.{role}._target_=scripted_engine.ScriptedEngine",
                f"+engine.{role}.tokenizer={self.teacher}",
            )
        ]
        return [
            *engines,
            f"student.files.path={self.student}",
            f"teacher.files.path={self.teacher}",
            "env.tasks.num_train=100",
            f"+env.tasks.cache_dir={self.games}",
            "env.max_turns=4",
            "env.max_reply_tokens=32",
            "evaluation.splits=[seen]",
            "evaluation.conditions=[full]",
            "evaluation.num_tasks=1",
            "evaluation.num_validation_tasks=0",
            f"trainer.max_steps={NUM_UPDATES}",
            "data.tasks_per_round=3",
            "data.batch_size=8",
            "data.updates_per_round=1",
            "optimizer.optimizer.lr=0.01",
            "optimizer.scheduler.num_warmup=1",
            f"paths.output_dir={folder}",
        ]

    def assembly(self, folder: Path, *overrides: str, experiment: str = "had_household") -> Assembly:
        """A small run of an experiment, not started yet."""
        with initialize_config_dir(str(ROOT / "configs"), version_base="1.3"):
            config = compose("train", [f"experiment={experiment}", *self.overrides(folder), *overrides])
        return Assembly(config)


def make_world(folder: Path) -> World:
    """Write two untrained models with a common tokenizer, and name the folder of the games."""
    tasks = HouseholdTasks("small", num_train=100, cache_dir=folder / "games").tasks("train")[:6]
    env = NativeEnv()
    steps = [env.reset(task) for task in tasks]
    texts = [line for step in steps for line in (step.observation, *step.commands)]
    names = sorted({name for text in texts for name in re.findall(r"[a-z]+ \d+", text)})
    prompt = PromptFormat()
    fixed = [prompt.system, prompt.commands_header, "Thought:", "\nAction:"]
    tokenizer = build_tokenizer(texts, names, fixed, vocab_size=len(names) + len(fixed) + 340)
    paths = [folder / "student", folder / "teacher"]
    for seed, path in enumerate(paths):
        model = make_qwen3(len(tokenizer), **SHAPE, seed=seed, eos_id=tokenizer.eos_token_id)
        save_hf(model, tokenizer, path)
    return World(*paths, folder / "games")


@dataclass(frozen=True)
class Result:
    """A finished run: its pieces, the metrics of its updates, and its rounds."""

    assembly: Assembly
    steps: list[dict[str, float]]
    rounds: list[Round]

    @property
    def records(self) -> list[Record]:
        return [record for collected in self.rounds for record in collected.records]

    @property
    def turns(self) -> list[Turn]:
        episodes = [episode for collected in self.rounds for episode in collected.episodes]
        return [turn for episode in episodes for turn in episode.turns]


def train(assembly: Assembly) -> Result:
    """Train to the end."""
    assert not assembly.problems()
    lightning.seed_everything(assembly.config.seed, verbose=False)
    result = Result(assembly, [], [])

    class Keep(lightning.Callback):
        def on_train_epoch_start(self, trainer, pl_module) -> None:
            result.rounds.extend(trainer.datamodule.rounds)

        def on_train_batch_end(self, trainer, pl_module, *args) -> None:
            result.steps.append(pl_module.last_step_metrics)

    trainer = assembly.trainer()
    trainer.callbacks.append(Keep())
    trainer.fit(assembly.module, datamodule=assembly.datamodule)
    assembly.finish(trainer)
    return result


def gradient_on(assembly: Assembly, records: Sequence[Record]) -> tuple[dict[str, float], torch.Tensor]:
    """Metrics and gradient of one step of the untrained student on these records."""
    data = assembly.datamodule
    metrics = assembly.module.compute_gradient(pack(records, data.layouts, data.max_tokens, data.pad_id))
    return metrics, flat([parameter.grad for parameter in assembly.module.model.parameters()])


class Never:
    """A schedule under which the teacher never acts, in the place of CosineDecay."""

    def __init__(self, num_updates: int, share: float) -> None:
        del num_updates, share

    def __call__(self, num_done: int) -> float:
        return 0.0


def flat(tensors: Sequence[torch.Tensor | None]) -> torch.Tensor:
    present = [tensor.detach().double().flatten() for tensor in tensors if tensor is not None]
    return torch.cat(present or [torch.zeros(0)])


def parameters(assembly: Assembly) -> torch.Tensor:
    return flat(list(assembly.module.model.parameters()))
