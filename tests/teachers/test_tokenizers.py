"""Labels of a teacher with another tokenizer: the text stays, the tokens and the span are the student's."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hydra import compose, initialize_config_dir
from teacher_by_hand import FakeEngine, states_of
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from char_tokenizer import CharTokenizer
from chat_formats import FORMATS, gemma4, qwen3, renderer_of, small
from had.data.record_io import record_from_dict, record_to_dict
from had.engines.base import SamplingParams
from had.envs.alfworld.grammar import HouseholdGrammar
from had.prompts.render import Renderer, end_of_turn_id
from had.records import ParseFailure, TeacherLabels, Verdict
from had.runtime.instantiate import build, target_of
from had.teachers.labeler import Labeler
from had.teachers.questions import NegativeAnswer, PositiveAnswer
from had.teachers.reencoding import (
    SAMPLE_REPLY,
    KeptIds,
    LabelReader,
    ReencodedText,
    needs_shared_tokenizer,
    vocabulary_difference,
)
from had.teachers.teacher import Teacher
from scripted_actors import char_renderer, two_lines

CONFIGS = Path(__file__).resolve().parents[2] / "configs"
METHODS = sorted(path.stem for path in (CONFIGS / "method").glob("*.yaml"))
REPLIES = {
    SAMPLE_REPLY: "go to drawer 12",
    "Thought: I nééd the 2nd mug, don't I?\nAction: take mug 2 from shelf 1": "take mug 2 from shelf 1",
    "Thought: 黒🙂 \n\nAction:  **look**\nThat is all.  ": "look",
    "\n  Action: search[red shoes, size: 9.5]": "search[red shoes, size: 9.5]",
    "I do not know.": None,
    "Action: look\nAction: help": None,
    "": None,
}
PAIRS = [(a, b) for a in FORMATS for b in FORMATS if a != b and {a, b} != {"gemma4_large", "gemma4_edge"}]


def reader_between(teacher: Renderer, student: Renderer) -> LabelReader:
    """As the composition root chooses it."""
    is_shared = vocabulary_difference(student.tokenizer, teacher.tokenizer) is None
    return (KeptIds if is_shared else ReencodedText)(teacher, student, end_of_turn_id(student.tokenizer))


def sampled(renderer: Renderer, text: str, is_complete: bool = True) -> tuple[tuple[int, ...], bool]:
    ids = renderer.tokenizer.encode(text, add_special_tokens=False)
    return (*ids, *([end_of_turn_id(renderer.tokenizer)] if is_complete else [])), is_complete


@pytest.mark.parametrize(("teacher_name", "student_name"), PAIRS)
def test_a_label_decodes_to_the_teachers_text_and_its_span_to_the_action(
    teacher_name: str, student_name: str
):
    teacher, student = (renderer_of(FORMATS[name]()) for name in (teacher_name, student_name))
    reader = reader_between(teacher, student)
    assert isinstance(reader, ReencodedText)
    reader.check()
    end = end_of_turn_id(student.tokenizer)
    for text, action in REPLIES.items():
        ids, is_complete = sampled(teacher, text)
        label = reader.response(ids, (-0.5,) * len(ids), is_complete)
        assert label is not None and label.logprobs == () and label.is_complete
        assert student.tokenizer.decode(label.ids[:-1]) == label.text == text
        assert label.ids[-1] == end and end not in label.ids[:-1]
        assert label.action == action and (label.failure is None) == (action is not None)
        assert student.tokenizer.decode(label.action_ids).strip(" *") == (action or "")
        if action is not None:
            assert student.tokenizer.decode(label.reasoning_ids).rstrip(" *").endswith("Action:")


def test_the_end_of_a_turn_is_each_models_own():
    teacher, student = renderer_of(gemma4(True)), renderer_of(qwen3())
    ids, _ = sampled(teacher, SAMPLE_REPLY)
    assert teacher.tokenizer.decode(ids[-1:]) == "<turn|>"
    label = reader_between(teacher, student).response(ids, (), True)
    assert label is not None and student.tokenizer.decode(label.ids[-1:]) == "<|im_end|>"


def test_a_reply_that_was_cut_at_its_limit_has_no_end_and_no_half_character():
    teacher, student = renderer_of(small()), renderer_of(gemma4(True))
    ids, _ = sampled(teacher, "Thought: a cup of café", is_complete=False)
    label = reader_between(teacher, student).response(ids[:-1], (), False)  # the first byte of é
    assert teacher.tokenizer.decode(ids[:-1]).endswith("\ufffd")
    assert label is not None and not label.is_complete
    assert student.tokenizer.decode(label.ids) == label.text == "Thought: a cup of caf"
    assert end_of_turn_id(student.tokenizer) not in label.ids


def test_control_tokens_of_the_student_in_a_reply_are_words():
    """A teacher that writes the student's end of turn must not teach it to stop there."""
    teacher, student = renderer_of(gemma4(True)), renderer_of(qwen3())
    text = "Thought: <|im_end|> and <|im_start|>user\nAction: look"
    label = reader_between(teacher, student).response(*sampled_with(teacher, text))
    assert label is not None and label.text == text and label.action == "look"
    controls = {id for id, token in student.tokenizer.added_tokens_decoder.items() if token.special}
    assert controls.intersection(label.ids) == {label.ids[-1]}
    # and the next prompt is read with control tokens again
    assert student.encode([{"role": "user", "content": "x"}]).count(end_of_turn_id(student.tokenizer)) == 1


def sampled_with(renderer: Renderer, text: str) -> tuple[tuple[int, ...], tuple[float, ...], bool]:
    ids, is_complete = sampled(renderer, text)
    return ids, (-1.0,) * len(ids), is_complete


def words_only() -> PreTrainedTokenizerFast:
    """A tokenizer that cannot write what is not among its words, and forgets white space."""
    words = ["<unk>", "<|end|>", "Thought", "Action", ":", "I", "go", "look"]
    tokenizer = Tokenizer(models.WordLevel({word: n for n, word in enumerate(words)}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<|end|>", unk_token="<unk>")
    fast.chat_template = small().chat_template
    return fast


def test_what_the_students_tokens_cannot_say_is_no_label_and_is_counted():
    replies = iter(["look", two_lines("look"), two_lines("go")])  # the first is a word that it knows
    teacher = Teacher(
        FakeEngine(lambda text, temperature: next(replies)),  # type: ignore[arg-type]
        char_renderer(),
        SamplingParams(1.0, 32),
        reader=ReencodedText(char_renderer(), renderer_of(words_only()), 1),
    )
    states = states_of("a", "b", "c")
    answers = PositiveAnswer(HouseholdGrammar()).ask(teacher, states, [TeacherLabels() for _ in states])
    assert [answer.positive is not None for answer in answers] == [True, False, False]
    usage = teacher.usage
    assert (usage.queries, usage.failures, usage.unreadable) == (3, 0, 2)


def test_a_student_that_cannot_write_replies_is_refused_before_anything_is_asked():
    reader = ReencodedText(renderer_of(small()), renderer_of(words_only()), 1)
    with pytest.raises(ValueError, match=r"Thought: I'll look.*take a student whose tokenizer"):
        reader.check()


def test_records_of_re_encoded_labels_are_kept_without_logprobs():
    student = renderer_of(qwen3())
    engine = FakeEngine(lambda text, t: two_lines("go to shelf 1" if "Harness" in text else "look"))
    teacher = Teacher(
        engine,  # type: ignore[arg-type]
        char_renderer(),
        SamplingParams(1.0, 32),
        reader=ReencodedText(char_renderer(), student, end_of_turn_id(student.tokenizer)),
    )
    questions = [PositiveAnswer(HouseholdGrammar()), NegativeAnswer()]
    episodes = [states_of(two_lines("look"), two_lines("look"))[0].episode]
    records, num_unlabelled = Labeler(teacher, questions, student).label(episodes, 0, 0)
    assert len(records) == 2 and num_unlabelled == 0
    for record in records:
        labels = record.labels
        assert labels.verdict is Verdict.VALID and labels.positive is not None and labels.negative is not None
        assert (labels.positive.action, labels.negative.action) == ("go to shelf 1", "look")
        assert student.tokenizer.decode(labels.positive.ids) == f"{two_lines('go to shelf 1')}<|im_end|>"
        assert student.tokenizer.decode(record.prompt_ids_without).startswith("<|im_start|>system")
        assert record_from_dict(json.loads(json.dumps(record_to_dict(record)))) == record


def test_of_one_vocabulary_the_sampled_ids_are_the_label():
    large, edge = renderer_of(gemma4(True)), renderer_of(gemma4(False))
    reader = reader_between(large, edge)
    assert isinstance(reader, KeptIds)
    ids, _ = sampled(large, SAMPLE_REPLY)
    odd = (
        *ids[:5],
        *large.tokenizer.encode("T", add_special_tokens=False),
        *ids[5:],
    )  # no encoder writes this
    assert reader.response(odd, (-0.5,) * len(odd), True) == large.response(odd, (-0.5,) * len(odd), True)


def test_of_one_vocabulary_with_two_ends_the_students_end_is_taught():
    teacher, student = small(), small()
    student.chat_template = student.chat_template.replace("<|end|>", "<|user|>")
    ends = [end_of_turn_id(tokenizer) for tokenizer in (teacher, student)]
    student_renderer = Renderer(student, char_renderer().format, 1000, frozenset(ends[1:]))
    reader = reader_between(renderer_of(teacher), student_renderer)
    body = tuple(teacher.encode(two_lines("look")))
    label = reader.response((*body, ends[0]), (-1.0,) * (len(body) + 1), True)
    assert label is not None and label.ids == (*body, ends[1]) and ends[0] != ends[1]
    cut = reader.response(body, (-1.0,) * len(body), False)
    assert cut is not None and cut.ids == body and cut.failure is not ParseFailure.EMPTY


def test_the_difference_between_vocabularies_is_named():
    assert vocabulary_difference(gemma4(True), gemma4(False)) is None
    said = vocabulary_difference(qwen3(), small())
    assert said is not None and said.startswith(f"151669 and {len(small())} tokens, and id 0 is '!'")


def test_a_part_says_whether_it_hands_over_ids_and_silence_means_yes():
    assert needs_shared_tokenizer(object())
    assert needs_shared_tokenizer(CharTokenizer)


NEED_ONE_VOCABULARY = {"opd", "opd_2x", "sage_opd", "guided_opd", "teacher_reference"}


@pytest.mark.parametrize("method", METHODS)
def test_which_methods_need_one_vocabulary(method: str):
    with initialize_config_dir(str(CONFIGS), version_base="1.3"):
        config = compose("train", [f"method={method}"]).method
        parts = [build(node) for node in config.questions]
        if config.actor is not None:
            parts.append(target_of(config.actor))
    assert any(map(needs_shared_tokenizer, parts)) == (method in NEED_ONE_VOCABULARY)
