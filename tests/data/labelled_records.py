"""Records written by hand, for the tests of layouts, packing and replay."""

from __future__ import annotations

from had.records import CompactScores, ParseFailure, Record, Response, TeacherLabels, TopKScores, Verdict

END = 9


def reply(reasoning: tuple[int, ...], action: tuple[int, ...]) -> Response:
    """A complete reply; an empty action means that none could be parsed."""
    ids = (*reasoning, *action, END)
    return Response(
        ids=ids,
        logprobs=(-0.5,) * len(ids),
        text="",
        is_complete=True,
        action="go" if action else None,
        failure=None if action else ParseFailure.NO_ACTION,
        action_span=(len(reasoning), len(reasoning) + len(action)) if action else (0, 0),
    )


def scores(response: Response, top_k: int = 2) -> CompactScores:
    """Top-k scores of the right shape."""
    num = len(response.ids)
    return CompactScores.of(TopKScores((tuple(range(top_k)),) * num, ((-0.7,) * top_k,) * num))


def make_record(
    id: str = "r",
    prompt: tuple[int, ...] = (1, 2, 3),
    student: Response | None = None,
    positive: Response | None = None,
    negative: Response | None = None,
    verdict: Verdict | None = Verdict.VALID,
    version: int = 0,
    actor: str = "student",
    **labels: object,
) -> Record:
    """A record with a differing, valid pair unless told otherwise."""
    return Record(
        id=id,
        episode_id="e",
        turn_index=0,
        relative_position=0.0,
        round=version,
        policy_version=version,
        prompt_ids=prompt,
        prompt_ids_without=(),
        student=student or reply((4,), (5, 6)),
        labels=TeacherLabels(
            positive=positive or reply((7,), (5, 8)),
            negative=negative or reply((7, 7), (6,)),
            verdict=verdict,
            **labels,  # type: ignore[arg-type]
        ),
        actor=actor,
    )
