"""A fast answer to a batch is what the servicer would answer, and there is none where the servicer has to decide."""

import threading

import pytest
from google.protobuf.duration_pb2 import Duration
from hypothesis import given, settings
from hypothesis import strategies as st

from query_service.cluster.shard_map import ShardMap
from query_service.lookups.local_lookup import MAX_KEYS_AT_ONCE
from query_service.serving.fast_batches import FastBatches, PublicBatches, ShardBatches
from query_service.serving.fast_gets import OwnReplicas
from statecast.query.v1 import query_pb2
from statecast.query.v1 import query_service_pb2 as api
from statecast.shard.v1 import shard_service_pb2 as shard
from statecast.state.v1 import state_pb2
from testkit.served_rows import EPOCH, KEY_QUERIES, NAMES, STATE_KEYS, WRITES, Writes
from testkit.served_stores import ME, ServedStores, at_once

MALFORMED = st.sampled_from(
    [
        None,
        state_pb2.StateKey(group="a", sort="s"),
        state_pb2.StateKey(group="a", member="m"),
        state_pb2.StateKey(group="a\0b"),
        state_pb2.StateKey(group="a", sort="s\0", member="m"),
    ]
)
WRONG_QUERIES = st.builds(query_pb2.KeyQuery, key=MALFORMED) | st.builds(
    query_pb2.KeyQuery, key=STATE_KEYS, after=st.just(state_pb2.Position(epoch=EPOCH, offset=-2))
)
REQUESTS = st.builds(
    api.BatchGetStatesRequest,
    store=st.sampled_from([*NAMES, *NAMES, "unknown"]),
    keys=st.lists(KEY_QUERIES, max_size=12) | st.lists(KEY_QUERIES | WRONG_QUERIES, max_size=4),
)


class Instance(ServedStores):
    """Served stores with the fast answers to batches."""

    def __init__(self, in_flight_bytes: int = 1 << 30, response_bytes: int = 1 << 24, max_keys: int = 5000) -> None:
        super().__init__(EPOCH, in_flight_bytes, response_bytes)
        owned, held = OwnReplicas(self.view, self.preference), OwnReplicas(self.view)
        batches = FastBatches(owned, self.in_flight, max_keys, response_bytes)
        self.public = PublicBatches(batches, self.metrics)
        self.internal = ShardBatches(FastBatches(held, self.in_flight, max_keys, response_bytes))

    def alone(self) -> "Instance":
        self.view.shard_map = ShardMap(frozenset({ME}), 2)
        return self

    def fast(self, request: api.BatchGetStatesRequest) -> bytes | None:
        return at_once(self.public.answer(request.SerializeToString(), None))


def batch(*groups: str, **fields: object) -> api.BatchGetStatesRequest:
    keys = [query_pb2.KeyQuery(key=state_pb2.StateKey(group=group)) for group in groups]
    return api.BatchGetStatesRequest(store="keyed", keys=keys, **fields)  # type: ignore[arg-type]


@settings(max_examples=40)
@given(WRITES, st.lists(REQUESTS, max_size=15), st.integers(0, 30_000), st.booleans())
async def test_a_fast_answer_is_the_servicers_own(
    writes: Writes,
    requests: list[api.BatchGetStatesRequest],
    later_ms: int,
    alone: bool,
) -> None:
    instance = Instance().alone() if alone else Instance()
    for write in writes:
        instance.write(*write)
    for replica in instance.view.replicas.values():
        replica.store.note_purged(2)
    instance.clock.now += later_ms / 1000
    for request in requests:
        wrapped = shard.BatchGetStatesRequest(query=request)
        answer = instance.fast(request)
        shard_answer = instance.internal.answer(wrapped.SerializeToString(), None)
        expected = await instance.answer(instance.queries.BatchGetStates, request)
        shard_expected = await instance.answer(instance.shards.BatchGetStates, wrapped)
        response = api.BatchGetStatesResponse.FromString(expected or b"")
        here = response.freshness and not any(freshness.forwarded for freshness in response.freshness)

        assert answer == (expected if here else None)
        assert shard_answer == (shard_expected if request.keys else None)


@pytest.mark.parametrize(
    "fields",
    [
        {"ranges": [query_pb2.RangeQuery(group="a")]},
        {"max_wait": Duration(seconds=1)},
        {"bounds": query_pb2.Bounds(max_lag_ms=10)},
    ],
)
async def test_ranges_waits_and_bounds_have_no_fast_answer(fields: dict[str, object]) -> None:
    instance = Instance().alone()

    assert instance.fast(batch("a")) is not None
    assert instance.fast(batch("a", **fields)) is None


async def test_what_is_no_message_or_too_many_keys_has_no_fast_answer() -> None:
    instance = Instance(max_keys=2).alone()

    assert instance.public.answer(b"\xff", None) is None
    assert instance.internal.answer(b"\x0a\xff", None) is None
    assert instance.fast(batch("a", "b")) is not None
    assert instance.fast(batch("a", "b", "c")) is None


async def test_an_answer_that_is_too_large_or_that_there_is_no_memory_for_is_left_to_the_servicer() -> None:
    request = batch("a", "b")
    for instance in (Instance(response_bytes=2000), Instance(in_flight_bytes=5000), Instance(in_flight_bytes=2000)):
        instance.alone().write("keyed", "a", b"x" * 1500)
        small = instance.fast(request)
        instance.write("keyed", "b", b"x" * 1500)

        assert (small is None) == (instance.in_flight.has_room(5000) is False)
        assert instance.fast(request) is None


async def test_a_replica_that_cannot_be_read_has_no_fast_answer() -> None:
    instance = Instance().alone()
    for replica in instance.view.replicas.values():
        replica.store.close()

    assert instance.fast(batch("a")) is None


async def test_a_large_batch_is_looked_up_in_another_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    instance = Instance().alone()
    here: list[bool] = []
    for replica in instance.view.replicas.values():
        read = replica.read

        def noting_read(keys: list[bytes], read=read) -> list[bytes | None]:  # type: ignore[no-untyped-def]
            here.append(threading.current_thread() is threading.main_thread())
            return read(keys)  # type: ignore[no-any-return]

        monkeypatch.setattr(replica, "read", noting_read)
    usual, large = batch("a"), batch(*["a"] * (MAX_KEYS_AT_ONCE + 1))
    fast = instance.fast(usual), instance.fast(large)
    instance.queries.query_limits = instance.queries.query_limits._replace(batch_keys=5000)
    answer = await instance.answer(instance.queries.BatchGetStates, large)

    assert (fast[0] is not None, fast[1]) == (True, None)
    assert answer is not None
    assert len(api.BatchGetStatesResponse.FromString(answer).results) == MAX_KEYS_AT_ONCE + 1
    assert here == [True, False]


async def test_what_is_answered_fast_is_counted() -> None:
    instance = Instance().alone()
    instance.write("keyed", "a", b"row")
    known = instance.view.replicas["keyed", instance.view.partition_of("keyed", "a")].freshness("").epoch
    request = batch("a", "a")
    request.keys[0].after.epoch = known
    assert instance.fast(request) is not None
    values = [
        instance.metrics.registry.get_sample_value(name, labels)
        for name, labels in (
            ("query_service_batch_keys_total", {}),
            ("query_service_batch_results_total", {}),
            ("query_service_calls_total", {"method": "BatchGetStates", "outcome": "ok"}),
        )
    ]

    assert values == [2, 1, 1]
