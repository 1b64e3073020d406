import pytest
from labelled_records import END, make_record, reply, scores

from had.data.layouts import (
    ActedResponseLayout,
    ActionPairLayout,
    OwnResponseLayout,
    PositiveActionLayout,
    ReferenceLayout,
    ResponseLayout,
    ResponsePairLayout,
)
from had.records import TeacherLabels, Verdict

NO_ACTION = reply((7,), ())


def paths(laid_out):
    return {branch.role: branch.path for branch in laid_out.branches}


def test_response_is_scored_with_its_end_of_turn():
    assert paths(ResponseLayout()(make_record())) == {"response": ((7, 5, 8, END),)}


def test_pair_stands_after_the_students_own_reasoning_and_scores_action_tokens_only():
    laid_out = ActionPairLayout()(make_record())
    assert paths(laid_out) == {"preferred": ((4,), (5, 8)), "dispreferred": ((4,), (6,))}
    assert laid_out.counts == {"pairs": 1, "accepted": 1, "differing": 1, "no_boundary": 0}


def test_equal_actions_count_as_a_pair_without_branches():
    laid_out = ActionPairLayout()(make_record(negative=reply((1, 1), (5, 8))))
    assert laid_out.branches == ()
    assert laid_out.counts == {"pairs": 1, "accepted": 1, "differing": 0, "no_boundary": 0}


@pytest.mark.parametrize("layout", [ActionPairLayout(), PositiveActionLayout()])
def test_student_response_without_action_gives_no_pair(layout):
    laid_out = layout(make_record(student=NO_ACTION))
    assert laid_out.branches == ()
    assert laid_out.counts == {"pairs": 0, "accepted": 0, "differing": 0, "no_boundary": 1}


@pytest.mark.parametrize("layout_class", [ActionPairLayout, PositiveActionLayout, ResponsePairLayout])
@pytest.mark.parametrize("verdict", [v for v in Verdict if v is not Verdict.VALID])
def test_rejected_positive_is_preferred_only_without_the_check(layout_class, verdict):
    record = make_record(verdict=verdict)
    checked, unchecked = layout_class()(record), layout_class(check_validity=False)(record)
    assert checked.branches == () and len(unchecked.branches) >= 1
    assert [checked.counts[name] for name in ("pairs", "accepted", "differing")] == [1, 0, 0]
    assert [unchecked.counts[name] for name in ("pairs", "accepted", "differing")] == [1, 1, 1]


@pytest.mark.parametrize("layout_class", [ActionPairLayout, PositiveActionLayout, ResponsePairLayout])
def test_unparsable_positive_never_forms_a_pair(layout_class):
    laid_out = layout_class(check_validity=False)(make_record(positive=NO_ACTION, verdict=Verdict.UNPARSABLE))
    assert laid_out.branches == () and laid_out.counts["pairs"] == 0


@pytest.mark.parametrize("layout", [ActionPairLayout(), ResponsePairLayout()])
def test_unparsable_negative_never_forms_a_pair(layout):
    laid_out = layout(make_record(negative=NO_ACTION))
    assert laid_out.branches == () and laid_out.counts["pairs"] == 0


def test_positive_action_keeps_equal_actions_and_needs_no_negative():
    laid_out = PositiveActionLayout()(make_record(negative=NO_ACTION))
    assert paths(laid_out) == {"preferred": ((4,), (5, 8))}
    assert laid_out.counts["pairs"] == laid_out.counts["accepted"] == 1


def test_response_pair_spans_whole_responses_and_needs_no_boundary():
    laid_out = ResponsePairLayout()(make_record(student=NO_ACTION, negative=reply((7, 7), (5, 8))))
    assert paths(laid_out) == {"preferred": ((7, 5, 8, END),), "dispreferred": ((7, 7, 5, 8, END),)}
    equal = ResponsePairLayout()(make_record(negative=reply((7,), (5, 8))))
    assert equal.branches == () and equal.counts["accepted"] == 1 and equal.counts["differing"] == 0


def test_reference_scores_travel_with_their_run():
    extra = {"reference_preferred": -1.0, "reference_dispreferred": -2.0}
    laid_out = ReferenceLayout(ActionPairLayout())(make_record(extra=extra))
    assert {b.role: b.span_extra for b in laid_out.branches} == {
        "preferred": {"reference_logprob": -1.0},
        "dispreferred": {"reference_logprob": -2.0},
    }
    with pytest.raises(ValueError, match=r"reference_preferred.*choose a labeler"):
        ReferenceLayout(ActionPairLayout())(make_record())


def test_own_response_carries_scores_and_the_judges_weight():
    student = reply((4,), (5, 6))
    record = make_record(student=student, scores=scores(student), judgement=0.5)
    (branch,) = OwnResponseLayout()(record).branches
    assert branch.path == (student.ids,) and branch.weight == 0.5
    assert len(branch.token_extra["topk_ids"]) == len(student.ids)
    assert OwnResponseLayout()(make_record(student=student, scores=scores(student))).branches[0].weight == 1.0
    with pytest.raises(ValueError, match="got none"):
        OwnResponseLayout()(make_record())
    with pytest.raises(ValueError, match="each of the 4 tokens"):
        OwnResponseLayout()(make_record(scores=scores(reply((4,), (5,)))))


def test_mixed_acting_splits_records_by_actor():
    by_teacher = make_record(actor="teacher")
    assert OwnResponseLayout()(by_teacher).branches == ()
    assert paths(ActedResponseLayout()(by_teacher)) == {"acted": ((4, 5, 6, END),)}
    assert ActedResponseLayout()(make_record()).branches == ()


def test_missing_label_names_the_record():
    record = make_record(id="r7")
    object.__setattr__(record, "labels", TeacherLabels(positive=record.labels.positive))
    with pytest.raises(ValueError, match=r"record r7.*negative"):
        ActionPairLayout()(record)


@pytest.mark.parametrize("layout_class", [ActionPairLayout, PositiveActionLayout, ResponsePairLayout])
@pytest.mark.parametrize("check_validity", [True, False])
def test_counts_never_rise_along_the_chain(layout_class, check_validity):
    for positive in (reply((7,), (5, 8)), NO_ACTION):
        for negative in (reply((7, 7), (6,)), reply((1,), (5, 8)), NO_ACTION):
            for student in (reply((4,), (5, 6)), NO_ACTION):
                for verdict in Verdict:
                    record = make_record(
                        student=student, positive=positive, negative=negative, verdict=verdict
                    )
                    counts = layout_class(check_validity)(record).counts
                    assert 1 >= counts["pairs"] >= counts["accepted"] >= counts["differing"] >= 0
