"""Any call of an instance's two services is answered with a message, or with an error that the README names."""

import grpc
from google.protobuf.descriptor import ServiceDescriptor
from hypothesis import given
from hypothesis import strategies as st
from inputs.messages import damaged_bytes, messages, sound_or_odd
from inputs.profiles import fuzz
from rigs.log import Log
from rigs.loop import Loop
from rigs.query_service import EPOCH, GROUP, ORDER, PARTITIONS, QUERY, SHARD, STORES, RunningQueryService

from query_service.reads.page_token import Cursor, encode_scan, encode_versions
from statecast.query.v1 import query_service_pb2 as query
from statecast.state.v1.state_pb2 import Position, StateKey

GOOD = query.GetStateRequest(store="orders-by-key", key=StateKey(group=ORDER))

stores = st.sampled_from([store.name for store in STORES])
groups = st.sampled_from((GROUP, ORDER, "gone"))
keys = st.sampled_from((StateKey(group=ORDER), StateKey(group=GROUP, sort="03", member=ORDER), StateKey(group="gone")))
positions = st.builds(Position, epoch=st.sampled_from((EPOCH, 0, 2**63 - 1)), offset=st.integers(-2, 50))
LIKELY = {
    "store": stores,
    "group": groups,
    "group_from": groups,
    "group_to": groups,
    "StateKey": keys,
    "Position": positions,
}
cursors = st.builds(
    Cursor,
    sound_or_odd(st.sampled_from((ORDER.encode(), f"{GROUP}\x0003\0{ORDER}".encode())), st.binary(max_size=30)),
    st.none() | st.integers(0, (1 << PARTITIONS) - 1) | st.integers(0, 300).map(lambda partition: 1 << partition),
)


@st.composite
def calls(draw: st.DrawFn, service: ServiceDescriptor) -> tuple[str, bytes]:
    """Returns a method and an encoded request; some requests go on from a page of their own."""
    method = draw(st.sampled_from(list(service.methods)))
    request = draw(messages(method.input_type, LIKELY))
    asked = getattr(request, "query", request)
    if isinstance(asked, query.ScanStatesRequest) and draw(st.booleans()):
        asked.page_token = encode_scan(asked, draw(cursors))
    if isinstance(asked, query.ListVersionsRequest) and draw(st.booleans()):
        offset = draw(st.sampled_from((-(2**63), -1, 0, 3, 2**63 - 1)))
        asked.page_token = encode_versions(asked, EPOCH, offset)
    return method.name, draw(damaged_bytes(st.just(request.SerializeToString())))


async def check(service: RunningQueryService, channel: grpc.aio.Channel, name: str, request: bytes) -> None:
    """Makes the call and then a sound one, which must be answered with its row."""
    await service.outcome(channel, name, request)
    answer = await service.outcome(service.public, "GetState", GOOD)

    assert isinstance(answer, query.GetStateResponse)
    assert answer.state.payload


@fuzz(5)
@given(calls(QUERY))
def test_every_public_call_is_answered(
    query_service: RunningQueryService, loop: Loop, log: Log, call: tuple[str, bytes]
) -> None:
    loop.run(check(query_service, query_service.public, *call))

    log.assert_clean()


@fuzz(5)
@given(calls(SHARD))
def test_every_internal_call_is_answered(
    query_service: RunningQueryService, loop: Loop, log: Log, call: tuple[str, bytes]
) -> None:
    loop.run(check(query_service, query_service.internal, *call))

    log.assert_clean()
