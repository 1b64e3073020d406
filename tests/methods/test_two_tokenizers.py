"""Runs whose teacher has a tokenizer and a chat format of its own, and the methods that refuse them."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from method_world import ROOT, SHAPE, World, train
from transformers import PreTrainedTokenizerBase

from chat_formats import qwen3
from had.assembly import Assembly
from had.engines.base import Generation
from had.models.student import save_hf
from had.models.tiny import make_qwen3
from had.pretraining.tokenizer import build_tokenizer
from had.teachers.reencoding import KeptIds, ReencodedText

METHODS = sorted(path.stem for path in (ROOT / "configs" / "method").glob("*.yaml"))
REFUSED = {  # what of them hands token ids over
    "opd": "OwnResponseScores",
    "opd_2x": "OwnResponseScores",
    "sage_opd": "OwnResponseScores",
    "guided_opd": "MixtureActor, OwnResponseScores",
    "teacher_reference": "ActionReference",
}
TURNS = "<|turn|>{{ message['role'] }}: {{ message['content'] }}<|over|>\n"
OTHER_TEMPLATE = (
    "{% for message in messages %}" + TURNS + "{% endfor %}"
    "{% if add_generation_prompt %}<|turn|>assistant: {% endif %}"
)


def other_tokenizer() -> PreTrainedTokenizerBase:
    """Bytes and few words; its end of text is not its end of turn."""
    tokenizer = build_tokenizer(["go to the shelf and look"], [], ["Admissible commands:"], vocab_size=300)
    tokenizer.add_special_tokens({"additional_special_tokens": ["<|turn|>", "<|over|>"]})
    tokenizer.chat_template = OTHER_TEMPLATE
    return tokenizer


def teacher_of(tokenizer: PreTrainedTokenizerBase, folder: Path) -> Path:
    return save_hf(make_qwen3(len(tokenizer), **SHAPE, seed=7, max_positions=16384), tokenizer, folder)


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return teacher_of(other_tokenizer(), tmp_path_factory.mktemp("other") / "teacher")


def run_with(world: World, teacher: Path, folder: Path, *overrides: str) -> Assembly:
    """Two updates; the prompts of a teacher that writes bytes are long, so its context is."""
    return world.assembly(
        folder, f"teacher.files.path={teacher}", f"engine.teacher.tokenizer={teacher}", "trainer.max_steps=2",
        *overrides,
    )  # fmt: skip


def roomy(assembly: Assembly) -> Assembly:
    """The student of this world reads 4,096 tokens, its teacher 16,384."""
    assembly.config.env.max_context_tokens = 4096
    return assembly


def heard(assembly: Assembly) -> list[str]:
    """Texts of everything that the teacher samples from now on."""
    engine, tokenizer, texts = assembly.acting.teacher_engine, assembly.acting.teacher_renderer.tokenizer, []
    generate, ends = engine.generate, assembly.acting.teacher_renderer.end_ids

    def listen(*arguments):
        results = generate(*arguments)
        for result in results:
            assert isinstance(result, Generation)
            texts.append(tokenizer.decode([id for id in result.ids if id not in ends]))
        return results

    engine.generate = listen
    return texts


def check_labels(result, texts: list[str], num_labels: int) -> None:
    """Every label is one of the teacher's texts in the student's tokens."""
    student = result.assembly.acting.student_renderer
    labels = [
        label
        for record in result.records
        for label in (record.labels.positive, record.labels.negative)
        if label
    ]
    assert len(labels) == num_labels * len(result.records) == len(texts) > 0
    said = [student.tokenizer.decode(label.ids[:-1] if label.is_complete else label.ids) for label in labels]
    assert sorted(said) == sorted(texts) and any(label.action for label in labels)
    for label in labels:
        assert max(label.ids) < len(student.tokenizer)
        assert not label.is_complete or label.ids[-1] == student.tokenizer.eos_token_id
        assert student.tokenizer.decode(label.action_ids).strip() == (label.action or "")


@pytest.mark.parametrize("method", sorted(set(METHODS) - set(REFUSED)))
def test_methods_that_need_text_only_train(world: World, other: Path, tmp_path: Path, method: str):
    assembly = roomy(run_with(world, other, tmp_path, f"method={method}"))
    texts = heard(assembly)
    result = train(assembly)
    assert isinstance(assembly.label_reader, ReencodedText)
    assert len(result.steps) == 2
    assert all(math.isfinite(value) for step in result.steps for value in step.values())
    assert all(step["grad_norm_total"] > 0 for step in result.steps)
    check_labels(result, texts, num_labels=len(assembly.labeler.questions[:2]))
    usage = assembly.labeler.teacher.usage
    assert (usage.failures, usage.unreadable) == (0, 0)


@pytest.mark.slow
def test_a_teacher_with_a_real_vocabulary_trains_a_small_student(world: World, tmp_path: Path):
    teacher = teacher_of(qwen3(), tmp_path / "teacher")
    assembly = run_with(world, teacher, tmp_path / "run", "method=had")
    texts = heard(assembly)
    result = train(assembly)
    assert all(math.isfinite(value) for step in result.steps for value in step.values())
    check_labels(result, texts, num_labels=2)


@pytest.mark.parametrize("method", sorted(REFUSED))
def test_methods_that_need_token_ids_refuse_before_a_model_is_loaded(
    world: World, other: Path, tmp_path: Path, method: str
):
    assembly = roomy(run_with(world, other, tmp_path, f"method={method}"))
    (said,) = assembly.problems()
    assert said.startswith(f"tokenizers: {REFUSED[method]} of method {method} hands token ids")
    for words in (str(world.student), str(other), "and id ", "Take a teacher of the student's family"):
        assert words in said
    assert {"student_engine", "teacher_engine"}.isdisjoint(vars(assembly.acting))


def test_one_vocabulary_keeps_the_ids_and_refuses_nothing(world: World, tmp_path: Path):
    for method in ("had", "opd"):
        assembly = world.assembly(tmp_path / method, f"method={method}")
        assert assembly.problems() == [] and isinstance(assembly.label_reader, KeptIds)


def test_a_model_that_reads_less_than_the_environment_shows_is_refused(world: World, other: Path, tmp_path):
    (said,) = run_with(world, other, tmp_path, "env.max_context_tokens=8192").problems()
    assert str(world.student) in said and "wants a context of 8192 tokens, the model reads 4096" in said
