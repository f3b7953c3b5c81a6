"""A store applies or skips any record of a topic, and the applied ones can be read."""

from collections.abc import Iterator
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st
from inputs.messages import damaged_bytes, messages, sound_or_odd
from inputs.profiles import fuzz
from inputs.texts import odd_texts
from rigs.log import Log
from rigs.loop import Loop
from rigs.query_service import EPOCH, RunningQueryService
from rigs.query_service import query_service as running_service

from query_service.storage.record import TOMBSTONE_HEADER
from query_service.storage.store_keys import MAX_OFFSET
from statecast.query.v1 import query_service_pb2 as query
from statecast.shard.v1 import shard_service_pb2 as shard
from statecast.state.v1.state_pb2 import StateKey, StateRecord
from testkit.query_service import FakeRecord, encoded_state, store_definition

NOW_MS = 1_700_000_000_000
MEMORY = "memory"
STORES = (
    store_definition("keyed", topic="keyed", engine=MEMORY),
    store_definition("versions", topic="versions", engine=MEMORY, history={"versions": 2}),
    store_definition("aged", topic="aged", history={"age": "1h"}),
    store_definition("plain", topic="plain", engine=MEMORY, message="bytes", format="plain"),
    store_definition("retained", topic="retained", message="bytes", format="plain", retain="1h", history={"age": "1m"}),
)

texts = odd_texts.filter(lambda text: "\0" not in text)
keys = (st.builds("{}\0{}\0{}".format, st.sampled_from("gh"), texts, texts) | texts).map(str.encode)
states = damaged_bytes(
    messages(StateRecord.DESCRIPTOR, {"epoch": st.integers(0, 2), "sequence": st.integers(0, 9)}).map(
        lambda message: bytes(message.SerializeToString())
    )
)
names = sound_or_odd(st.just(TOMBSTONE_HEADER), odd_texts)
records = st.builds(
    FakeRecord,
    record_key=sound_or_odd(st.sampled_from((b"g", b"g\0s\0m")), st.none() | damaged_bytes(keys)),
    record_value=st.none() | states,
    record_headers=st.lists(st.tuples(names, st.none() | st.text() | states), max_size=2),
    record_ms=st.none() | st.sampled_from((0, 1, NOW_MS, 2**63 - 1)),
)


@pytest.fixture(scope="module")
def service(loop: Loop, log: Log, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningQueryService]:
    """A query service with empty stores of every kind."""
    with running_service(loop, tmp_path_factory.mktemp("data"), STORES) as service:
        yield service


@fuzz(2)
@given(st.sampled_from([store.name for store in STORES]), st.lists(records, max_size=8))
def test_every_record_is_applied_or_skipped_and_harms_no_other(
    service: RunningQueryService, loop: Loop, log: Log, store: str, batch: list[FakeRecord]
) -> None:
    replica = service.emptied(store, "g")
    good = next(group for group in map("good-{}".format, count()) if service.replica_of(store, group) is replica)
    sound = FakeRecord(good.encode(), encoded_state(1, b"row"))
    for offset, record in enumerate([*batch, sound]):
        record.record_offset = offset
    replica.apply([*batch, sound], len(batch) + 1)
    answer = loop.run(read(service, store, good, replica.partition))
    replica.run_maintenance(MAX_OFFSET, MAX_OFFSET, 100)

    log.assert_clean()
    assert answer.state.payload
    assert answer.freshness.current_through.offset == len(batch)


async def read(service: RunningQueryService, store: str, good: str, partition: int) -> query.GetStateResponse:
    """Reads the store in every way; returns the row of the group that is good."""
    for group in ("g", good):
        key = StateKey(group=group)
        for seconds in (-(2**63), 0, 2**63 - 1):
            request = query.GetStateRequest(store=store, key=key)
            request.as_of.seconds = seconds
            await service.outcome(service.public, "GetState", request)
        await service.outcome(service.public, "ListVersions", query.ListVersionsRequest(store=store, key=key))
        batch = query.BatchGetStatesRequest(store=store)
        batch.keys.add(key=key)
        batch.ranges.add(group=group).after.epoch = EPOCH
        await service.outcome(service.public, "BatchGetStates", batch)
    scan = shard.ScanStatesRequest(query=query.ScanStatesRequest(store=store), partition=partition)
    await service.outcome(service.internal, "ScanStates", scan)
    answer = await service.outcome(
        service.public, "GetState", query.GetStateRequest(store=store, key=StateKey(group=good))
    )
    assert isinstance(answer, query.GetStateResponse), answer
    return answer
