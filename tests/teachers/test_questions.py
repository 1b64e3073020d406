"""Questions and the labeler: what is asked of whom, what a record needs, and what is counted."""

from __future__ import annotations

import pytest
from teacher_by_hand import FakeEngine, response, states_of, teacher_of

from had.engines.base import EngineFailure
from had.envs.alfworld.grammar import HouseholdGrammar
from had.records import TeacherLabels, Verdict
from had.teachers.labeler import Labeler
from had.teachers.questions import NegativeAnswer, OwnResponseScores, PositiveAnswer
from had.teachers.reference import ActionReference
from scripted_actors import char_renderer, two_lines

GO, LOOK, REFUSED = (two_lines(command) for command in ("go to shelf 1", "look", "go to shelf 7"))


def pair(positive: str = GO, negative: str = LOOK, verdict: Verdict = Verdict.VALID) -> TeacherLabels:
    return TeacherLabels(response(positive), response(negative), verdict)


def test_a_method_that_asks_no_answer_has_records():
    teacher = teacher_of(FakeEngine())
    episodes = [states_of(LOOK, GO)[0].episode]
    records, num_unlabelled = Labeler(teacher, [OwnResponseScores(2)], char_renderer()).label(episodes, 0, 0)
    assert len(records) == 2 and num_unlabelled == 0
    assert records[0].labels.scores.num_tokens == len(response(LOOK).ids)
    assert teacher.usage.queries == 0 and teacher.usage.tokens_scored == len(LOOK) + len(GO) + 2


def test_turns_that_the_teacher_played_are_queries_and_are_not_scored():
    teacher = teacher_of(FakeEngine())
    episodes = [states_of(LOOK, GO, actors=["teacher", "student"])[0].episode]
    records, _ = Labeler(teacher, [OwnResponseScores(2)], char_renderer()).label(episodes, 0, 0)
    assert [record.actor for record in records] == ["teacher", "student"]
    assert records[0].labels.scores is None and records[1].labels.scores is not None
    usage = teacher.usage
    assert (usage.queries, usage.tokens_generated, usage.tokens_scored) == (1, len(LOOK) + 1, len(GO) + 1)


def test_a_state_whose_question_failed_gives_no_record():
    teacher = teacher_of(FakeEngine(lambda text, t: EngineFailure("full") if "turn 1" in text else LOOK))
    episodes = [states_of(LOOK, GO)[0].episode]
    questions = [PositiveAnswer(HouseholdGrammar()), NegativeAnswer()]
    records, num_unlabelled = Labeler(teacher, questions, char_renderer()).label(episodes, 0, 0)
    assert [record.turn_index for record in records] == [0] and num_unlabelled == 1
    assert teacher.usage.failures == 2 and teacher.usage.queries == 4


def test_reference_scores_the_actions_after_the_students_own_reasoning():
    engine = FakeEngine()
    teacher = teacher_of(engine)
    states = states_of(two_lines("look", thought="Mine."))
    (label,) = ActionReference().ask(teacher, states, [pair()])
    good, bad = (len(it.action_ids) for it in (label.positive, label.negative))
    assert label.extra == {"reference_preferred": -0.25 * good, "reference_dispreferred": -0.25 * bad}
    assert all(prompt.endswith("Thought: Mine.\nAction:") for prompt in engine.prompts)
    assert teacher.usage.tokens_scored == good + bad and teacher.usage.queries == 0


@pytest.mark.parametrize(
    ("student", "label"),
    [
        (LOOK, pair(GO, GO)),
        (LOOK, pair(REFUSED, GO, Verdict.NOT_ADMISSIBLE)),
        (LOOK, pair("hm", GO, Verdict.UNPARSABLE)),
        (LOOK, pair(GO, "hm")),
        ("hm", pair()),
    ],
)
def test_reference_is_not_asked_where_no_pair_will_be_compared(student, label):
    teacher = teacher_of(FakeEngine())
    states = states_of(student)
    assert ActionReference().ask(teacher, states, [label]) == [label]
    assert ActionReference().is_answered(states[0], label)
    assert teacher.usage.tokens_scored == 0


def test_reference_follows_the_validity_check_of_the_layout():
    states, label = states_of(LOOK), pair(REFUSED, GO, Verdict.NOT_ADMISSIBLE)
    question = ActionReference(check_validity=False)
    (scored,) = question.ask(teacher_of(FakeEngine()), states, [label])
    assert "reference_preferred" in scored.extra
    assert not question.is_answered(states[0], label)


def test_what_does_not_fit_into_the_context_is_a_failure():
    teacher = teacher_of(FakeEngine(max_context_tokens=20))
    states = states_of(LOOK)
    assert teacher.scores(states, "with_harness", 2) == [None]
    (label,) = ActionReference().ask(teacher, states, [pair()])
    assert label.extra == {} and teacher.usage.failures == 3 and teacher.usage.tokens_scored == 0


def test_another_model_can_be_asked_and_does_not_count_as_the_teacher():
    teacher, frozen = teacher_of(FakeEngine()), teacher_of(FakeEngine(lambda text, t: GO))
    questions = [PositiveAnswer(HouseholdGrammar(), asks="initial_student")]
    labeler = Labeler(teacher, questions, char_renderer(), {"initial_student": frozen})
    records, _ = labeler.label([states_of(LOOK)[0].episode], 0, 0)
    assert records[0].labels.positive.action == "go to shelf 1"
    assert teacher.usage.queries == 0 and frozen.usage.queries == 1
    with pytest.raises(ValueError, match=r"expected to ask one of \['teacher'\], got \['initial_student'\]"):
        Labeler(teacher, questions, char_renderer())
