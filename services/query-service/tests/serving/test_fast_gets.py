"""A fast answer is what the servicer would answer, and there is none where the servicer has to decide."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from query_service.cluster.shard_map import ShardMap
from query_service.serving.fast_gets import FastGets, OwnReplicas, PublicGets, ShardGets
from query_service.storage.progress import Freshness
from statecast.query.v1 import query_pb2
from statecast.query.v1 import query_service_pb2 as api
from statecast.shard.v1 import shard_service_pb2 as shard
from statecast.state.v1 import state_pb2
from testkit.served_rows import NAMES, STATE_KEYS, WRITES, Writes
from testkit.served_stores import ME, PARTITIONS, PEER, ServedStores, at_once

PARTS = st.sampled_from(["", "a", "b", "é", "order-17", "c" * 200, "s", "m", "n", "1", "2", "a\x00s", "\x00"])
REQUESTS = st.builds(
    api.GetStateRequest,
    store=st.sampled_from([*NAMES, "unknown"]),
    key=st.none() | st.builds(state_pb2.StateKey, group=PARTS, sort=PARTS, member=PARTS) | STATE_KEYS,
    bounds=st.none() | st.builds(query_pb2.Bounds, max_lag_ms=st.integers(-1, 100)),
)


class Instance(ServedStores):
    """Served stores with the fast answers to gets."""

    def __init__(self, epoch: int = 77, in_flight_bytes: int = 1 << 30) -> None:
        super().__init__(epoch, in_flight_bytes)
        fast = FastGets(OwnReplicas(self.view, self.preference), self.in_flight)
        self.public = PublicGets(fast, self.metrics.calls.of("GetState"))
        self.internal = ShardGets(FastGets(OwnReplicas(self.view), self.in_flight))

    def fast(self, group: str, store: str = "keyed") -> bytes | None:
        key = state_pb2.StateKey(group=group)
        return at_once(self.public.answer(api.GetStateRequest(store=store, key=key).SerializeToString(), None))

    def alone(self) -> "Instance":
        self.view.shard_map = ShardMap(frozenset({ME}), 2)
        return self


@settings(max_examples=40)
@given(WRITES, st.lists(REQUESTS, max_size=20), st.integers(-(1 << 63), (1 << 63) - 1), st.integers(0, 30_000))
async def test_a_fast_answer_is_the_servicers_own(
    writes: Writes,
    requests: list[api.GetStateRequest],
    epoch: int,
    later_ms: int,
) -> None:
    instance = Instance(epoch)
    for write in writes:
        instance.write(*write)
    instance.clock.now += later_ms / 1000
    for request in requests:
        wrapped = shard.GetStateRequest(query=request)
        answer = at_once(instance.public.answer(request.SerializeToString(), None))
        shard_answer = instance.internal.answer(wrapped.SerializeToString(), None)
        if request.HasField("bounds"):
            assert (answer, shard_answer) == (None, None)
            continue
        expected = await instance.answer(instance.queries.GetState, request)
        here = expected is not None and not api.GetStateResponse.FromString(expected).freshness.forwarded

        assert answer == (expected if here else None)
        assert shard_answer == await instance.answer(instance.shards.GetState, wrapped)


async def test_what_is_no_message_has_no_fast_answer() -> None:
    instance = Instance().alone()

    assert instance.public.answer(b"\xff", None) is None
    assert instance.internal.answer(b"\x0a\xff", None) is None


async def test_a_partition_that_is_not_served_or_has_moved_away_has_no_fast_answer() -> None:
    instance = Instance().alone()
    instance.write("keyed", "a", b"row")
    replica = instance.view.replicas["keyed", instance.view.partition_of("keyed", "a")]
    answered = instance.fast("a")
    replica.progress.serving = False
    reading_anew = instance.fast("a")
    replica.progress.serving = True
    replica.store.close()
    closed = instance.fast("a")
    instance.view.replicas.clear()

    assert answered is not None
    assert (reading_anew, closed, instance.fast("a")) == (None, None, None)


async def test_a_replica_answers_fast_only_while_it_is_the_one_that_is_asked_first() -> None:
    instance = Instance()
    shards = [("keyed", partition) for partition in range(PARTITIONS)]
    ranked_first = next(each for each in shards if instance.view.shard_map.ranked(*each)[0] == ME)
    group = next(key for key in map(str, range(100)) if instance.view.partition_of("keyed", key) == ranked_first[1])
    instance.write("keyed", group, b"row")
    fresh = Freshness(ranked_first[1], 0, 1, 77, 5, PEER.instance)
    instance.peers.of(PEER).held = {ranked_first: (True, fresh)}
    before = instance.fast(group)
    instance.clock.now += 11
    demoted = instance.fast(group)
    replica = instance.view.replicas[ranked_first]
    replica.note_end_offset(replica.store.next_offset, instance.clock.now - 5)
    between_the_bounds = instance.fast(group)
    replica.note_end_offset(replica.store.next_offset, instance.clock.now)
    restored = instance.fast(group)
    instance.view.shard_map = ShardMap(frozenset({PEER}), 2)

    assert before is not None
    assert (demoted, between_the_bounds) == (None, None)
    assert restored is not None
    assert instance.fast(group) is None


async def test_a_replica_answers_fast_in_place_of_one_that_is_demoted() -> None:
    instance = Instance()
    shards = [("keyed", partition) for partition in range(PARTITIONS)]
    ranked_second = next(each for each in shards if instance.view.shard_map.ranked(*each)[0] == PEER)
    group = next(key for key in map(str, range(100)) if instance.view.partition_of("keyed", key) == ranked_second[1])
    instance.write("keyed", group, b"row")
    lagging = Freshness(ranked_second[1], 0, 20_000, 77, 5, PEER.instance)
    before = instance.fast(group)
    instance.peers.of(PEER).held = {ranked_second: (True, lagging)}

    assert before is None
    assert instance.fast(group) is not None


async def test_there_is_a_fast_answer_only_while_there_is_memory_for_it() -> None:
    small, large = Instance(in_flight_bytes=2000).alone(), Instance(in_flight_bytes=4000).alone()
    for instance in (small, large):
        instance.write("keyed", "a", b"x" * 2000)

    assert small.fast("a") is None
    assert large.fast("a") is not None


@pytest.mark.parametrize("group", ["a", "absent"])
async def test_what_is_answered_fast_is_counted_once_and_all_else_by_the_servicer(group: str) -> None:
    instance = Instance().alone()
    instance.write("keyed", "a", b"row")
    answered = instance.fast(group) is not None
    registry = instance.metrics.registry
    calls = registry.get_sample_value("query_service_calls_total", {"method": "GetState", "outcome": "ok"})
    timed = registry.get_sample_value("query_service_call_seconds_count", {"method": "GetState"})

    assert (calls or 0, timed) == (int(answered), int(answered))
    assert registry.get_sample_value("query_service_calls_in_flight", {"method": "GetState"}) == 0
