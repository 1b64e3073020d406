"""Finding the beginnings of prompts that earlier batches have computed."""

import random

from had.engines.kv_cache import KVRows
from had.engines.packing import Row, pack, split_batches
from had.engines.prefix import PrefixStore, encode, num_common


def test_encoded_prompts_sort_like_their_ids() -> None:
    prompts = [(300,), (1, 70_000), (1,), (2, 0), (1, 2), (256, 1), (255, 9)]
    assert sorted(prompts) == sorted(prompts, key=encode)


def test_num_common() -> None:
    assert num_common(encode([1, 2, 3]), encode([1, 2, 4])) == 2
    assert num_common(encode([1, 2, 3]), encode([1, 2])) == 2
    assert num_common(encode([5]), encode([1, 2])) == 0
    assert num_common(encode([]), encode([1])) == 0


def test_store_finds_the_longest_beginning() -> None:
    rng = random.Random(0)
    store = PrefixStore(max_slots=10_000)
    known = [[rng.randrange(3) for _ in range(rng.randrange(1, 12))] for _ in range(60)]
    for batch in (known[:20], known[20:]):
        store.add(KVRows(len(batch), 12), map(encode, batch))
    for _ in range(100):
        prompt = [rng.randrange(3) for _ in range(10)]
        length, place = store.find(encode(prompt))
        assert length == max(num_common(encode(prompt), encode(other)) for other in known)
        assert place is not None and num_common(place.tokens, encode(prompt)) == length


def test_store_drops_the_oldest_batch_and_keeps_none_that_is_too_large() -> None:
    store = PrefixStore(max_slots=20)
    store.add(KVRows(1, 10), [encode([1, 1])])
    store.add(KVRows(1, 10), [encode([2, 2])])
    store.add(KVRows(1, 21), [encode([3, 3])])
    assert [store.find(encode([i, i]))[0] for i in (1, 2, 3)] == [2, 2, 0]
    store.add(KVRows(1, 10), [encode([4, 4])])
    assert [store.find(encode([i, i]))[0] for i in (1, 2, 4)] == [0, 2, 2]
    store.clear()
    assert store.find(encode([2, 2])) == (0, None)


def test_batches_respect_the_budget_and_lose_no_row() -> None:
    rows = [Row(i, tuple(range(n)), encode(range(n)), n - 1) for i, n in enumerate((5, 50, 7, 120, 9, 8))]
    batches = list(split_batches(rows, num_new=3, max_slots=100))
    assert sorted(row.request for batch in batches for row in batch) == list(range(6))
    for batch in batches:
        lengths = [len(row.ids) for row in batch]
        assert lengths == sorted(lengths)
        assert len(batch) == 1 or len(batch) * (lengths[-1] + 3) <= 100


def test_pack_computes_no_shared_beginning_twice() -> None:
    system = list(range(100, 140))
    prompts = [[*system, 1, 2], [*system, 1, 2], [*system, 9], [7, 8]]
    batch = [Row(i, tuple(p), encode(p), len(p) - 1) for i, p in enumerate(prompts)]
    packed = list(pack(batch, KVRows(4, 50), PrefixStore(0), max_tokens=1000))
    assert len(packed) == 1
    computed = {segment.row: segment.num_tokens for segment in packed[0].segments}
    assert computed == {3: 2, 0: 42, 1: 1, 2: 1}
    assert [packed[0].ids[k] for k in packed[0].kept] == [8, 2, 2, 9]
    assert [packed[0].positions[k] for k in packed[0].kept] == [1, 41, 41, 40]
