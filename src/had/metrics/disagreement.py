"""Disagreement of the teacher's two actions, by relative position in the episode (paper's Figure 9).

Both actions are independent samples, so sampling noise is a part of the rate.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from had.metrics.counts import NO_CASE, FloatArray, Share
from had.metrics.intervals import Estimate, wilson
from had.records import Record

NUM_BINS = 10


@dataclass(frozen=True)
class DisagreementCounts:
    """Differing pairs of pairs by position, and the records that have no pair.

    Attributes:
        bins: bin i holds the records with relative position in [i/10, (i+1)/10).
        num_unparsable: records in which at least one of the two replies has no command.
        num_unlabeled: records for which the teacher was not asked both questions.
    """

    bins: tuple[Share, ...] = (NO_CASE,) * NUM_BINS
    num_unparsable: int = 0
    num_unlabeled: int = 0


NUM_COUNTS = 2 * NUM_BINS + 2


def count_disagreement(records: Iterable[Record]) -> DisagreementCounts:
    """Count records; see `DisagreementCounts`."""
    bins = [NO_CASE] * NUM_BINS
    num_unparsable = num_unlabeled = 0
    for record in records:
        positive, negative = record.labels.positive, record.labels.negative
        if positive is None or negative is None:
            num_unlabeled += 1
        elif positive.action is None or negative.action is None:
            num_unparsable += 1
        else:
            index = position_bin(record.relative_position)
            bins[index] += Share(int(positive.action != negative.action), 1)
    return DisagreementCounts(tuple(bins), num_unparsable, num_unlabeled)


def position_bin(relative_position: float) -> int:
    """The bin of a relative position in [0, 1)."""
    assert 0 <= relative_position < 1, f"a relative position lies in [0, 1), got {relative_position}"
    return int(relative_position * NUM_BINS)


def disagreement_estimates(sums_D: FloatArray) -> dict[str, Estimate]:
    """Estimates `disagreement` (all positions), `disagreement_0` … `disagreement_9`, and `num_*`."""
    shares = [(int(sums_D[2 * i]), int(sums_D[2 * i + 1])) for i in range(NUM_BINS)]
    num_unparsable, num_unlabeled = int(sums_D[-2]), int(sums_D[-1])
    num_pairs = sum(total for _, total in shares)
    num_records = num_pairs + num_unparsable + num_unlabeled
    return {
        "disagreement": wilson(sum(hits for hits, _ in shares), num_pairs),
        **{f"disagreement_{i}": wilson(*share) for i, share in enumerate(shares)},
        "num_unparsable": Estimate(num_unparsable if num_records else None, count=num_records),
        "num_unlabeled": Estimate(num_unlabeled if num_records else None, count=num_records),
    }
