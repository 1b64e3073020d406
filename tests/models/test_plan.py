"""Plans: sizes as published, memory as measured, counts as by hand, and no model, game or GPU needed."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import measured_memory as measured
import pytest
from hydra import compose, initialize_config_dir
from omegaconf import DictConfig
from transformers import AutoTokenizer, PreTrainedModel

from had.engines.hf import HFEngine
from had.engines.vllm_local import VLLMEngine
from had.models.architecture import model_size, read_config
from had.models.memory import StepShape, activation_bytes, training_memory
from had.models.model_files import ModelFiles
from had.models.sharding import Placement
from had.models.tiny import make_qwen3
from had.planning.engine_memory import Use, engine_memory
from had.planning.plan import GIB, Plan, step_mask
from had.planning.text import memory_parts, plan_text, problems, totals
from had.planning.workload import Asked, Limits, Typical, workload
from scripts import run_script

ROOT = Path(__file__).resolve().parents[2]
PAPER_ENVS = ("alfworld", "webshop", "scienceworld")
PAPER = sorted(
    path.stem
    for path in (ROOT / "configs" / "experiment").glob("*.yaml")
    if path.stem.rsplit("_", 1)[1] in PAPER_ENVS
)
# Parameters of the safetensors files on the model hub, tied ones once.
PUBLISHED = {
    "Qwen/Qwen3-0.6B": 596_049_920,
    "Qwen/Qwen3-1.7B": 1_720_574_976,
    "Qwen/Qwen3-8B": 8_190_735_360,
    "Qwen/Qwen3-30B-A3B": 30_532_122_624,
}
os.environ.setdefault("HAD_ROOT", str(ROOT))


@functools.cache
def composed(*overrides: str) -> DictConfig:
    with initialize_config_dir(str(ROOT / "configs"), version_base="1.3"):
        return compose("train", [*overrides, "paths.output_dir=/nowhere"])


@functools.cache
def plan(*overrides: str) -> Plan:
    return Plan(composed(*overrides))


@pytest.mark.parametrize("name", PUBLISHED)
def test_sizes_are_the_published_ones(name: str):
    published = plan().assumptions["architectures"]
    size = model_size(read_config(ModelFiles(name), published))
    assert size.parameters == PUBLISHED[name]
    assert size.parameters == size.outside_layers + size.layers * size.largest_layer  # all layers are alike
    assert (size.active < size.parameters) == ("A3B" in name)


def test_a_model_without_numbers_is_named():
    with pytest.raises(ValueError, match=r"'Some/Model' is not here.*planning\.architectures.*Qwen3-8B"):
        read_config(ModelFiles("Some/Model"), {"Qwen/Qwen3-8B": {}})


def measure(what: str) -> int:
    """Peak bytes of a program of its own."""
    program = Path(measured.__file__)
    environment = {**os.environ, "MALLOC_MMAP_THRESHOLD_": "65536", "OMP_NUM_THREADS": "1"}
    result = subprocess.run(
        [sys.executable, str(program), what], env=environment, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout.splitlines()[-1])["bytes"]


@pytest.mark.parametrize("what", ["checkpointed", pytest.param("kept", marks=pytest.mark.slow)])
def test_memory_of_training_is_the_measured_one(what: str):
    config = make_qwen3(measured.VOCABULARY, **measured.SHAPE).config
    shape = StepShape(measured.ROWS, measured.TOKENS, measured.SCORED, groups=2)
    activations = activation_bytes(config, "float32", what == "checkpointed", shape, step_mask)
    planned = training_memory(model_size(config), Placement(), activations, groups=2, num_shards=1)
    assert measure(what) == pytest.approx(planned.total, rel=0.2)


def test_memory_of_an_engine_is_the_measured_one():
    size = model_size(make_qwen3(measured.VOCABULARY, **measured.ENGINE_SHAPE).config)
    row = measured.PROMPT + 2 * measured.NEW + 1
    use = Use(row, measured.ENGINE_ROWS, device_bytes=0)
    slots = measured.ENGINE_ROWS * (row + 7)
    options = {"max_batch_tokens": slots, "prefix_cache_tokens": slots}
    planned = engine_memory(HFEngine, options, size, number_bytes=4, use=use)
    assert planned.rows == measured.ENGINE_ROWS
    assert measure("engine") == pytest.approx(planned.weights + planned.cache, rel=0.2)


def test_checkpointing_and_smaller_micro_batches_need_less():
    config = make_qwen3(500, 64, 8).config

    def needed(is_checkpointed: bool, tokens: int) -> int:
        shape = StepShape(2, tokens, 10, groups=1)
        return activation_bytes(config, "float32", is_checkpointed, shape, step_mask)

    assert needed(True, 256) < needed(False, 256) / 2
    assert needed(True, 128) < needed(True, 256) < 3 * needed(True, 128)


def test_an_engine_inside_the_process_takes_its_share_and_sleeps():
    size, use = model_size(make_qwen3(500).config), Use(100, 10, device_bytes=80 * GIB)
    awake = engine_memory(VLLMEngine, {"gpu_memory_utilization": 0.4}, size, 2, use)
    assert awake.weights + awake.cache == awake.weights_kept + awake.kept == pytest.approx(32 * GIB)
    asleep = engine_memory(VLLMEngine, {"gpu_memory_utilization": 0.4, "sleeps": True}, size, 2, use)
    assert (asleep.weights_kept, asleep.kept) == (0, 0) and asleep.cache == awake.cache


def test_an_engine_without_limits_cannot_be_planned():
    with pytest.raises(ValueError, match="none of the limits"):
        engine_memory(Path, {}, model_size(make_qwen3(500).config), 2, Use(1, 1, 1))


def test_counts_by_hand():
    """4 tasks of 5 turns give 20 records: 2 updates of 8 and 4 left over, so 5 rounds bring 12 updates."""
    typical = Typical(first_prompt=100, per_turn=20, tail=30, reply=10, turns=0.5, eval_tasks=7)
    limits = Limits(10, None, 4, 8, "drain", 12, eval_runs=2, eval_tasks=None, validation_episodes=3)
    work = workload(limits, typical, Asked(answers=2, scored=0))
    assert (work.records, work.updates_per_round, work.rounds) == (20, 2.5, 5)
    assert work.teacher_answers == 200 and work.eval_episodes == 17
    assert work.prompt == 160  # 100, 130, …, 220
    assert work.last_prompt == 370
    assert work.new_prompt == (100 + 4 * 50) / 5  # the first prompt, then what was added and the tail
    windowed = workload(
        Limits(10, 1, 4, 8, 1, 12, eval_runs=2, eval_tasks=3, validation_episodes=0), typical, Asked(0, 1)
    )
    assert windowed.last_prompt == 130 and windowed.rounds == 12 and windowed.eval_episodes == 6


@pytest.mark.parametrize(
    ("method", "asked"),
    [("had", (2, 0)), ("sopd", (1, 0)), ("opd", (0, 1)), ("sage_opd", (1, 1)), ("teacher_reference", (2, 2)),
     ("student_reference", (2, 0))],
)  # fmt: skip
def test_what_the_teacher_is_asked_follows_from_the_method(method: str, asked: tuple[int, int]):
    assert plan(f"method={method}").asked == Asked(*asked)


@pytest.mark.parametrize("experiment", PAPER)
def test_every_setting_of_the_paper_can_be_planned(experiment: str):
    text = plan_text(plan(f"experiment={experiment}", "planning.gpus=8", "planning.gpu_memory_gib=141"))
    assert "8 process(es), fully sharded, 141 GiB each" in text and "GPU hours" in text


def test_sharding_divides_what_grows_with_the_student():
    one, eight = (
        {
            part.name.split(",")[0]: part
            for part in memory_parts(plan("experiment=had_alfworld", f"planning.gpus={n}"))
        }
        for n in (1, 8)
    )
    for name, words in (("weights", 4), ("optimizer", 8), ("gradients", 8)):
        (first,) = (
            part for key, part in one.items() if key.startswith(f"student: {name}") and "as they" not in key
        )
        (second,) = (
            part for key, part in eight.items() if key.startswith(f"student: {name}") and "as they" not in key
        )
        assert first.training == words * PUBLISHED["Qwen/Qwen3-1.7B"]
        assert second.training == pytest.approx(first.training / 8)


def test_the_mixture_of_experts_does_not_fit_beside_the_student_but_on_servers_does():
    experiment = ("experiment=had_webshop", "planning.gpus=8", "planning.gpu_memory_gib=80")
    (playing, *_) = problems(plan(*experiment))
    assert "engine of the teacher: weights" in playing and "engine=vllm_gpu" in playing
    assert problems(plan(*experiment, "engine=vllm_servers")) == []
    assert totals(memory_parts(plan(*experiment, "engine=vllm_servers")))[0] < 2 * GIB


@pytest.fixture
def nothing_here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No games, no hub, and loading a model or tokenizer is an error."""

    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("a plan loads no weights and no tokenizer")

    monkeypatch.setenv("ALFWORLD_DATA", str(tmp_path / "none"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr(PreTrainedModel, "from_pretrained", refuse)
    monkeypatch.setattr(AutoTokenizer, "from_pretrained", refuse)


@pytest.mark.usefixtures("nothing_here")
def test_the_program_prints_the_plan_and_refuses_what_cannot_fit(tmp_path: Path, capsys):
    arguments = ["experiment=had_alfworld", "plan=true", "planning.gpu_memory_gib=80"]
    assert run_script("train.py", *arguments, "planning.gpus=8", f"hydra.run.dir={tmp_path / 'a'}") == 0
    printed = capsys.readouterr().out
    assert "1,720.6 million" in printed and "8,190.7 million" in printed and "GPU hours" in printed
    assert (tmp_path / "a" / "plan.txt").read_text("utf-8").strip() in printed
    assert run_script("train.py", *arguments, "planning.gpus=1", f"hydra.run.dir={tmp_path / 'b'}") == 2
    assert "Lower data.max_tokens" in capsys.readouterr().err


def test_the_main_job_fits_this_machine(tmp_path: Path, capsys):
    assert run_script("train.py", "plan=true", f"hydra.run.dir={tmp_path}") == 0
    assert "one process" in capsys.readouterr().out
