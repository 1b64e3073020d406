import pytest
import torch
from labelled_records import make_record, reply, scores

from had.batch import TokenBatch
from had.data.layouts import ActionPairLayout, Branch, LaidOut, OwnResponseLayout, ResponseLayout
from had.data.packing import pack

HAD = (ResponseLayout(), ActionPairLayout())
BIG = 10_000


def visible_path(batch: TokenBatch, row: int, position: int) -> list[int]:
    """The tokens that a position sees, itself included, in the order of the row."""
    visible = batch.attention_mask()[row, 0, position].nonzero().flatten()
    positions = batch.positions_BT[row, visible]
    assert positions.tolist() == list(range(len(visible))), "a path must have position ids 0, 1, 2, …"
    return batch.tokens_BT[row, visible].tolist()


def scored_contexts(batches: list[TokenBatch]) -> dict[str, list[tuple[int, list[int], int]]]:
    """By role, (record, everything that predicts the token, the token) of every scored token."""
    contexts: dict[str, list[tuple[int, list[int], int]]] = {}
    for batch in batches:
        for role, spans in batch.spans.items():
            owners = spans.records_S[spans.spans_N].tolist()
            rows, sources = spans.rows_N.tolist(), spans.sources_N.tolist()
            for record, row, source, target in zip(
                owners, rows, sources, spans.targets_N.tolist(), strict=True
            ):
                contexts.setdefault(role, []).append((record, visible_path(batch, row, source), target))
    return {role: sorted(values) for role, values in contexts.items()}


def expected_contexts(records, layouts):
    contexts: dict[str, list[tuple[int, list[int], int]]] = {}
    for index, record in enumerate(records):
        for branch in (branch for layout in layouts for branch in layout(record).branches):
            sequence = [*record.prompt_ids, *(token for run in branch.path for token in run)]
            first = len(sequence) - len(branch.path[-1])
            for position in range(first, len(sequence)):
                contexts.setdefault(branch.role, []).append((index, sequence[:position], sequence[position]))
    return {role: sorted(values) for role, values in contexts.items()}


RECORDS = [
    make_record("a"),
    make_record("b", prompt=(1,), student=reply((), (5,))),  # no reasoning: the prompt predicts the action
    make_record("c", prompt=(2, 2, 2, 2, 2, 2), negative=reply((1, 1), (5, 8))),  # equal actions
    make_record("d", student=reply((4,), ())),  # no boundary
    make_record("e", student=reply((7,), (5,)), positive=reply((7,), (5, 5)), negative=reply((1,), (5,))),
]


@pytest.mark.parametrize("max_tokens", [1, 30, BIG])
def test_every_scored_token_sees_exactly_its_own_sequence(max_tokens):
    assert scored_contexts(pack(RECORDS, HAD, max_tokens, pad_id=0)) == expected_contexts(RECORDS, HAD)


def test_prompt_and_reasoning_exist_once():
    (batch,) = pack([RECORDS[0]], HAD, BIG, pad_id=0)
    # prompt 3, y+ 4, z_s 1, a+ 2, a- 1
    assert batch.tokens_BT.shape == (1, 3 + 4 + 1 + 2 + 1)
    assert batch.parents_BM.tolist() == [[-1, 0, 0, 2, 2]]
    assert batch.counts["tokens"] == 11


def test_runs_that_two_roles_score_exist_once():
    class Twice:
        def __call__(self, record):
            return LaidOut((Branch("first", ((5, 6),)), Branch("second", ((5, 6),), weight=0.5)))

    (batch,) = pack([make_record()], [Twice()], BIG, pad_id=0)
    assert batch.tokens_BT.tolist() == [[1, 2, 3, 5, 6]]
    assert batch.spans["first"].sources_N.tolist() == batch.spans["second"].sources_N.tolist() == [2, 3]
    assert batch.counts["weighted_tokens_second"] == 1.0 and batch.counts["tokens_second"] == 2


def test_budget_limits_padded_tokens_and_a_long_tree_is_alone():
    records = [make_record(f"r{i}", prompt=(1,) * (1 + 7 * i)) for i in range(6)]
    batches = pack(records, HAD, 60, pad_id=0)
    assert all(batch.tokens_BT.numel() <= 60 or batch.tokens_BT.shape[0] == 1 for batch in batches)
    assert sum(batch.tokens_BT.shape[0] for batch in batches) == 6
    assert [b.tokens_BT.shape[0] for b in pack(records, HAD, 1, pad_id=0)] == [1] * 6


def test_counts_are_those_of_the_whole_step_in_every_micro_batch():
    batches = pack(RECORDS, HAD, 1, pad_id=0)
    assert len(batches) == 5
    for batch in batches:
        counts = batch.counts
        assert (counts["records"], counts["pairs"], counts["accepted"]) == (5, 4, 4)
        assert (counts["differing"], counts["no_boundary"]) == (3, 1)
        assert counts["tokens_response"] == 5 * 4 and counts["spans_response"] == 5
        assert counts["tokens_preferred"] == 6 and counts["tokens_dispreferred"] == 3
        assert counts["tokens_scored"] == 29


def test_records_with_and_without_pairs_do_not_share_a_micro_batch():
    batches = pack(RECORDS, HAD, BIG, pad_id=0)
    assert sorted(sorted(batch.spans) for batch in batches) == [
        ["dispreferred", "preferred", "response"],
        ["response"],
    ]


def test_order_of_records_does_not_matter():
    forwards, backwards = pack(RECORDS, HAD, 40, pad_id=0), pack(RECORDS[::-1], HAD, 40, pad_id=0)
    assert [b.tokens_BT.tolist() for b in forwards] == [b.tokens_BT.tolist() for b in backwards]
    assert forwards[0].counts == backwards[0].counts


def test_padding_is_invisible():
    (batch,) = pack([make_record("a", prompt=(1,) * 9), make_record("b")], HAD, BIG, pad_id=3)
    padding = batch.nodes_BT < 0
    assert padding.any() and (batch.tokens_BT[padding] == 3).all()
    visible = batch.attention_mask()[:, 0]
    off_diagonal = visible & ~torch.eye(visible.shape[1], dtype=torch.bool)
    assert not off_diagonal.masked_select(padding[:, None, :]).any()


def test_scores_and_weights_follow_their_tokens():
    students = [reply((4,), (5, 6)), reply((4, 4, 4), (5,))]
    records = [
        make_record("a", student=students[0], scores=scores(students[0]), judgement=0.5),
        make_record("b", student=students[1], scores=scores(students[1]), judgement=1.0),
        make_record("c", student=students[1], scores=scores(students[1]), judgement=0.0),
    ]
    (batch,) = pack(records, [OwnResponseLayout()], BIG, pad_id=0)
    own = batch.spans["own"]
    assert own.extra["topk_ids"].shape == own.extra["topk_logprobs"].shape == (9, 2)
    assert own.extra["topk_ids"].dtype == torch.long and own.extra["topk_logprobs"].dtype == torch.float32
    assert dict(zip(own.records_S.tolist(), own.weights_S.tolist(), strict=True)) == {0: 0.5, 1: 1.0}
    assert batch.counts["weighted_tokens_own"] == 7.0 and batch.counts["tokens_own"] == 9
    assert batch.counts["own"] == 3 and batch.counts["skipped"] == 1


def test_step_without_scored_tokens_still_has_one_micro_batch():
    (batch,) = pack([make_record(actor="teacher")], [OwnResponseLayout()], BIG, pad_id=0)
    assert batch.spans == {} and batch.tokens_BT.tolist() == [[1, 2, 3]]
    assert batch.counts["records"] == 1 and batch.counts["tokens_scored"] == 0


def test_errors_teach():
    with pytest.raises(ValueError, match="at least one record"):
        pack([], HAD, BIG, pad_id=0)
    with pytest.raises(ValueError, match="max_tokens must be >= 1"):
        pack(RECORDS, HAD, 0, pad_id=0)
    with pytest.raises(ValueError, match="record p: the prompt is empty"):
        pack([make_record("p", prompt=())], HAD, BIG, pad_id=0)
    with pytest.raises(ValueError, match=r"role 'x' is empty"):
        pack([make_record()], [lambda record: LaidOut((Branch("x", ((5,), ())),))], BIG, pad_id=0)
