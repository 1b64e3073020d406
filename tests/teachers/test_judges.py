"""Judges: what they ask, how they read the answer, and the weight that follows."""

from __future__ import annotations

import math

import pytest
from teacher_by_hand import FakeEngine, scores_of, states_of, teacher_of

from had.engines.base import EngineFailure
from had.envs.alfworld.grammar import HouseholdGrammar
from had.prompts.views import PromptFormat
from had.records import TeacherLabels
from had.teachers.judgement import TurnWeight, confidence
from had.teachers.judges import AgreementJudge, LanguageJudge, Need, judge_chat, read_need
from scripted_actors import two_lines


@pytest.mark.parametrize(
    ("reply", "need"),
    [
        ("Skip", Need.SKIP),
        ("WEAK.", Need.WEAK),
        ("I would say: **strong**", Need.STRONG),
        ("Strong. Really strong!", Need.STRONG),
        ("Skip or Weak", None),
        ("skipping", None),
        ("", None),
    ],
)
def test_reads_a_judgement_that_names_one_word(reply, need):
    assert read_need(reply) is need


def test_language_judge_shows_the_feedback_and_asks_once_per_turn():
    engine = FakeEngine(lambda text, temperature: "Weak" if temperature == 0 else "warm")
    teacher = teacher_of(engine)
    states = states_of(two_lines("look"), two_lines("go to shelf 1"))
    assert LanguageJudge()(teacher, states) == [Need.WEAK, Need.WEAK]
    assert "Answer to turn 0." in engine.prompts[0] and "Harness of turn 0." in engine.prompts[0]
    assert "find the mug" in engine.prompts[1] and "Answer to turn 1." in engine.prompts[1]
    assert "Answer to turn 1." not in engine.prompts[0]  # nothing of the future
    assert teacher.usage.queries == 2 and teacher.usage.tokens_generated == 2 * 5


def test_language_judge_drops_old_turns_before_the_turn_in_question():
    states = states_of(*[two_lines("look")] * 6)
    all_turns = judge_chat(teacher_of(FakeEngine()).renderer, states[-1])[1]["content"]
    window = judge_chat(teacher_of(FakeEngine(), PromptFormat(history_turns=2)).renderer, states[-1])
    assert "turn 0" in all_turns and "turn 2" not in window[1]["content"] and "turn 3" in window[1]["content"]
    renderer = teacher_of(FakeEngine()).renderer
    room = len(renderer.encode(judge_chat(renderer, states[-1]))) - 1
    tight = judge_chat(teacher_of(FakeEngine(), max_prompt=room).renderer, states[-1])[1]["content"]
    assert "turn 0" not in tight and "turn 1" in tight and "Answer to turn 5." in tight
    assert judge_chat(teacher_of(FakeEngine(), max_prompt=10).renderer, states[-1]) is None


@pytest.mark.parametrize(
    ("reply", "need"),
    [
        (two_lines("go to shelf 1"), Need.SKIP),
        (two_lines("look"), Need.WEAK),
        (two_lines("go to shelf 7"), Need.STRONG),
        (two_lines("open safe 1"), Need.STRONG),  # had no effect here before
        ("I do not know", Need.STRONG),
    ],
)
def test_agreement_judge_compares_with_the_greedy_action(reply, need):
    greedy = FakeEngine(lambda text, temperature: two_lines("go to shelf 1" if temperature == 0 else "look"))
    teacher = teacher_of(greedy)
    assert AgreementJudge(HouseholdGrammar())(teacher, states_of(reply)) == [need]
    assert teacher.usage.queries == 1


def test_a_failed_engine_gives_no_judgement():
    teacher = teacher_of(FakeEngine(lambda text, temperature: EngineFailure("full")))
    for judge in (LanguageJudge(), AgreementJudge(HouseholdGrammar())):
        assert judge(teacher, states_of("hm")) == [None]
    assert teacher.usage.failures == 2


def test_confidence_is_the_mean_of_the_largest_probabilities():
    scores = scores_of(math.log(0.5), math.log(0.25), math.log(1.0))
    assert confidence(scores) == pytest.approx((0.5 + 0.25 + 1) / 3, rel=1e-3)


def test_weight_is_correction_times_confidence():
    needs = [Need.SKIP, Need.WEAK, Need.STRONG, None]
    states = states_of(*[two_lines("look")] * 5)
    labels = [TeacherLabels(scores=scores_of(math.log(0.5))) for _ in needs] + [TeacherLabels()]
    asked = []

    def judge(teacher, states):
        asked.extend(states)
        return needs

    weighted = TurnWeight(judge, alpha=0.25).ask(teacher_of(FakeEngine()), states, labels)
    values = [label.judgement for label in weighted]
    assert values[:4] == pytest.approx([0, 0.125, 0.5, 0.5], rel=1e-3) and values[4] is None
    assert [label.extra["correction"] for label in weighted[:4]] == [0, 0.25, 1, 1]
    assert len(asked) == 4  # a turn without scores is not judged
    with pytest.raises(ValueError, match="alpha"):
        TurnWeight(judge, alpha=2)
