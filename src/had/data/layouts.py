"""Layouts: which token runs of a record a method scores, and in which role.

A layout turns one `Record` into *branches* of the record's token tree. Packing (`had.data.packing`) then
shares every run that several branches have in common, so a layout never thinks about rows, positions or
masks. A new way to supervise a record is one more layout.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from had.records import Record, Response, Verdict

Run = tuple[int, ...]


@dataclass(frozen=True)
class Branch:
    """One path from the record's prompt to a scored run.

    Attributes:
        role: name under which the loss terms find the scored tokens.
        path: runs of token ids after the prompt; the last one is scored, the others are its context. Empty
            context runs are allowed and vanish.
        weight: weight of the scored run.
        token_extra: per name, one number or one list of numbers for each scored token.
        span_extra: per name, one number for the scored run.
    """

    role: str
    path: tuple[Run, ...]
    weight: float = 1.0
    token_extra: Mapping[str, Sequence[Sequence[float]] | Sequence[float]] = field(default_factory=dict)
    span_extra: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class LaidOut:
    """What one layout makes of one record: its branches, and what it adds to the counts of the step."""

    branches: tuple[Branch, ...] = ()
    counts: Mapping[str, float] = field(default_factory=dict)


class Layout(Protocol):
    """Turns a record into branches."""

    def __call__(self, record: Record) -> LaidOut:
        """Lay out one record.

        Raises:
            ValueError: the record lacks a label that the layout needs.
        """


def _required(record: Record, name: str) -> Response:
    """The teacher response `name` of the record's labels."""
    response: Response | None = getattr(record.labels, name)
    if response is None:
        raise ValueError(
            f"record {record.id}: this layout needs the teacher's {name} response, but the labels have none; "
            "choose a labeler that asks for it or another layout"
        )
    return response


def is_valid(record: Record) -> bool:
    """True when the positive action passed the validity check (m = 1, spec section 5)."""
    return record.labels.verdict is Verdict.VALID


def _pair_counts(record: Record, is_pair: bool, is_accepted: bool, is_differing: bool) -> dict[str, float]:
    """The counts that every layout of the preference term adds; records ≥ pairs ≥ accepted ≥ differing.

    `pairs` can be formed: what is compared could be parsed. `accepted` is n_V, the denominator of the term:
    the pairs that passed the validity check, or all of them without a check. `differing` are the accepted
    pairs whose two sides differ. `no_boundary` counts records whose student response has no action, hence no
    z_s.
    """
    return {
        "pairs": float(is_pair),
        "accepted": float(is_pair and is_accepted),
        "differing": float(is_pair and is_accepted and is_differing),
        "no_boundary": float(record.student.action is None),
    }


class ResponseLayout:
    """Role `response`: the teacher's positive response y⁺ after x̃, its end-of-turn token included."""

    def __call__(self, record: Record) -> LaidOut:
        return LaidOut((Branch("response", (_required(record, "positive").ids,)),))


class ActionPairLayout:
    """Roles `preferred` and `dispreferred`: a⁺ and a⁻, each after x̃ and the student's own z_s (paper Eq. 5).

    A pair needs two actions that can be parsed and a student response with an action (it bounds z_s). It is
    accepted when the positive action is valid, or without `check_validity` in any case. Accepted pairs of
    equal actions are counted but get no branch: Δ is 0 and so is its gradient.
    """

    def __init__(self, check_validity: bool = True) -> None:
        self.check_validity = check_validity

    def __call__(self, record: Record) -> LaidOut:
        positive, negative = _required(record, "positive"), _required(record, "negative")
        is_pair = None not in (positive.action, negative.action, record.student.action)
        is_accepted = is_valid(record) or not self.check_validity
        counts = _pair_counts(record, is_pair, is_accepted, positive.action_ids != negative.action_ids)
        if not counts["differing"]:
            return LaidOut(counts=counts)
        context = record.student.reasoning_ids
        branches = (
            Branch("preferred", (context, positive.action_ids)),
            Branch("dispreferred", (context, negative.action_ids)),
        )
        return LaidOut(branches, counts)


class PositiveActionLayout:
    """Role `preferred` alone: a⁺ after x̃ and z_s, with the mask of `ActionPairLayout`.

    The negative response is not looked at, so the teacher need not be asked for it: a "pair" is a positive
    action that can be parsed, after a student response with an action, and every accepted one is scored.
    """

    def __init__(self, check_validity: bool = True) -> None:
        self.check_validity = check_validity

    def __call__(self, record: Record) -> LaidOut:
        positive = _required(record, "positive")
        is_pair = None not in (positive.action, record.student.action)
        is_accepted = is_valid(record) or not self.check_validity
        counts = _pair_counts(record, is_pair, is_accepted, is_differing=True)
        if not counts["accepted"]:
            return LaidOut(counts=counts)
        path = (record.student.reasoning_ids, positive.action_ids)
        return LaidOut((Branch("preferred", path),), counts)


class ResponsePairLayout:
    """Roles `preferred` and `dispreferred`: the whole responses y⁺ and y⁻, each after x̃ (*full response*).

    Pairs are those of `ActionPairLayout`, except that no boundary of the student's response is needed and
    that a pair is skipped only when the whole responses are equal.
    """

    def __init__(self, check_validity: bool = True) -> None:
        self.check_validity = check_validity

    def __call__(self, record: Record) -> LaidOut:
        positive, negative = _required(record, "positive"), _required(record, "negative")
        is_pair = None not in (positive.action, negative.action)
        is_accepted = is_valid(record) or not self.check_validity
        counts = _pair_counts(record, is_pair, is_accepted, positive.ids != negative.ids)
        if not counts["differing"]:
            return LaidOut(counts=counts)
        return LaidOut(
            (Branch("preferred", (positive.ids,)), Branch("dispreferred", (negative.ids,))), counts
        )


class ReferenceLayout:
    """Adds to each scored run of another layout the log-probability that a reference policy gives it.

    It is read from `labels.extra["reference_<role>"]` (natural log, summed over the tokens of the run) and
    becomes the span extra `reference_logprob`.
    """

    def __init__(self, layout: Layout) -> None:
        self.layout = layout

    def __call__(self, record: Record) -> LaidOut:
        laid_out = self.layout(record)
        branches = tuple(self._with_reference(record, branch) for branch in laid_out.branches)
        return replace(laid_out, branches=branches)

    def _with_reference(self, record: Record, branch: Branch) -> Branch:
        key = f"reference_{branch.role}"
        if key not in record.labels.extra:
            raise ValueError(
                f"record {record.id}: labels.extra has no {key!r} (it has {sorted(record.labels.extra)}); "
                "choose a labeler that scores the actions with the reference policy"
            )
        extra = {**branch.span_extra, "reference_logprob": record.labels.extra[key]}
        return replace(branch, span_extra=extra)


class OwnResponseLayout:
    """Role `own`: the student's own response after x̃, with the teacher's top-k scores of every token (OPD).

    Token extras: `topk_ids` [N, K] and `topk_logprobs` [N, K]. The run's weight is the judge's, 1 without a
    judge. A run of weight 0 has no gradient and gets no branch (`skipped`), and neither has a record in which
    the teacher acted.
    """

    def __call__(self, record: Record) -> LaidOut:
        if record.actor != "student":
            return LaidOut(counts={"own": 0.0, "skipped": 0.0})
        weight = 1.0 if record.labels.judgement is None else record.labels.judgement
        counts = {"own": 1.0, "skipped": float(weight == 0)}
        if weight == 0:
            return LaidOut(counts=counts)
        scores, num_tokens = record.labels.scores, len(record.student.ids)
        if scores is None or scores.num_tokens != num_tokens:
            got = "none" if scores is None else f"those of {scores.num_tokens} tokens"
            raise ValueError(
                f"record {record.id}: expected teacher top-k scores for each of the {num_tokens} tokens of "
                f"the student's response, got {got}; choose a labeler that scores the student's response"
            )
        rows = scores.unpack()
        extra = {"topk_ids": rows.ids, "topk_logprobs": rows.logprobs}
        return LaidOut((Branch("own", (record.student.ids,), weight=weight, token_extra=extra),), counts)


class ActedResponseLayout:
    """Role `acted`: the response that the teacher itself played at a turn of mixed acting (Guided-OPD)."""

    def __call__(self, record: Record) -> LaidOut:
        if record.actor != "teacher":
            return LaidOut(counts={"acted": 0.0})
        return LaidOut((Branch("acted", (record.student.ids,)),), {"acted": 1.0})
