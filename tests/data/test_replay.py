import json

import pytest
from labelled_records import make_record, reply, scores

from had.data.record_io import record_from_dict, record_to_dict
from had.data.replay import ReplayBuffer


def some(version: int, num: int, name: str = "r"):
    return [make_record(f"{name}{version}/{i:03d}", version=version) for i in range(num)]


def ids(batches):
    return [[record.id for record in batch] for batch in batches]


def test_full_batches_are_drawn_and_leftovers_wait():
    buffer = ReplayBuffer(batch_size=4)
    buffer.add(some(0, 11))
    batches = buffer.draw(version=0)
    assert [len(batch) for batch in batches] == [4, 4]
    assert buffer.counts() == {
        "records_added": 11,
        "records_used": 8,
        "records_expired": 0,
        "records_waiting": 3,
    }
    assert buffer.draw(version=0) == []


def test_a_limit_keeps_the_first_batches_and_leaves_the_rest_waiting():
    buffers = [ReplayBuffer(batch_size=4) for _ in range(2)]
    for buffer in buffers:
        buffer.add(some(0, 13))
    limited, free = buffers[0].draw(0, max_batches=2), buffers[1].draw(0)
    assert ids(limited) == ids(free)[:2] and len(free) == 3
    assert (len(buffers[0]), buffers[0].num_used) == (5, 8)


def test_no_record_is_used_twice():
    buffer = ReplayBuffer(batch_size=5)
    used = []
    for version in range(6):
        buffer.add(some(version, 13))
        used += [id for batch in ids(buffer.draw(version)) for id in batch]
    assert len(used) == len(set(used)) == buffer.num_used
    assert buffer.num_used + buffer.num_expired + len(buffer) == buffer.num_added


def test_record_lives_for_two_policy_versions():
    buffer = ReplayBuffer(batch_size=4)
    buffer.add(some(3, 3))
    assert buffer.draw(3) == []
    buffer.add(some(4, 1))
    assert len(buffer.draw(4)) == 1  # visited by version 3, still usable at version 4
    buffer.add(some(5, 3))
    assert buffer.draw(6) == [] and len(buffer) == 3
    buffer.add(some(7, 1))
    assert buffer.draw(7) == [] and buffer.num_expired == 3 and len(buffer) == 1


def test_older_records_go_first():
    buffer = ReplayBuffer(batch_size=4)
    buffer.add(some(1, 3) + some(0, 3))
    (batch,) = ids(buffer.draw(1))
    assert sum(id.startswith("r0") for id in batch) == 3


def test_fixed_number_of_updates_per_round():
    buffer = ReplayBuffer(batch_size=2, updates_per_round=2)
    buffer.add(some(0, 9))
    assert [len(buffer.draw(0)), len(buffer.draw(1)), len(buffer)] == [2, 2, 1]


def test_shuffle_is_seeded_and_does_not_depend_on_arrival():
    def drawn(seed, records, version=0):
        buffer = ReplayBuffer(batch_size=4, seed=seed)
        buffer.add(records)
        return ids(buffer.draw(version))

    records = some(0, 12)
    assert drawn(0, records) == drawn(0, records[::-1])
    assert drawn(0, records) != drawn(1, records)
    assert drawn(0, records) != drawn(0, records, version=1)
    assert drawn(0, records) != [sorted(batch) for batch in drawn(0, records)]


def test_state_survives_json():
    first = ReplayBuffer(batch_size=4)
    first.add(some(0, 6))
    first.draw(0)
    second = ReplayBuffer(batch_size=4)
    second.load_state_dict(json.loads(json.dumps(first.state_dict())))
    assert second.counts() == first.counts()
    for buffer in (first, second):
        buffer.add(some(1, 7))
    assert second.draw(1) == first.draw(1)


def test_record_survives_json():
    student = reply((4,), (5, 6))
    record = make_record(
        student=student,
        negative=reply((1,), ()),
        scores=scores(student),
        judgement=0.5,
        extra={"reference_preferred": -1.5},
    )
    assert record_from_dict(json.loads(json.dumps(record_to_dict(record)))) == record
    with pytest.raises(ValueError, match="record r: not a record"):
        record_from_dict({**record_to_dict(record), "surprise": 1})


def test_errors_teach():
    buffer = ReplayBuffer(batch_size=4)
    buffer.add(some(0, 1))
    with pytest.raises(ValueError, match="r0/000 is in the buffer already"):
        buffer.add(some(0, 1))
    with pytest.raises(ValueError, match="'drain' or a number"):
        ReplayBuffer(updates_per_round="all")
    with pytest.raises(ValueError, match="batch_size >= 1"):
        ReplayBuffer(batch_size=0)
