"""Bytes that are written without messages are those that the generated classes write."""

from hypothesis import example, given
from hypothesis import strategies as st

from query_service.reads import wire
from query_service.reads.messages import fill_freshness
from query_service.storage.progress import Freshness
from query_service.storage.store_keys import HEADER, UNTIMED, key_parts
from statecast.query.v1 import query_pb2
from statecast.state.v1 import state_pb2

INT64 = st.integers(-(1 << 63), (1 << 63) - 1)
INT32 = st.integers(0, (1 << 31) - 1)
BOUNDS = st.sampled_from([sign * (1 << bits) + step for bits in range(62) for step in (-1, 0, 1) for sign in (1, -1)])
NUMBERS = INT64 | BOUNDS
TEXTS = st.text(st.characters(exclude_characters="\0", codec="utf-8"), min_size=1)
LONG_TEXTS = TEXTS | st.integers(1, 300).map(lambda size: "é" * size)
KEYS = LONG_TEXTS | st.tuples(LONG_TEXTS, LONG_TEXTS, LONG_TEXTS).map("\0".join)
PAYLOADS = st.binary() | st.integers(0, 40_000).map(bytes)
HEADERS = st.builds(HEADER.pack, INT32, INT32, NUMBERS, NUMBERS, INT32, st.sampled_from([0, UNTIMED]))
LAGS = st.integers(0, 1 << 40)
FRESHNESS = st.tuples(INT32, LAGS, LAGS, NUMBERS, NUMBERS, TEXTS | st.just("")).map(lambda fields: Freshness(*fields))


@given(NUMBERS)
def test_a_number_is_written_as_protobuf_does(number: int) -> None:
    message = state_pb2.Position(epoch=number)

    assert wire.varint(number) == (message.SerializeToString()[1:] or b"\0")


@given(KEYS, NUMBERS, HEADERS, PAYLOADS)
@example("k", 0, HEADER.pack(0, 0, 0, 0, 0, 0), b"")
@example("k", 0, HEADER.pack(0, 0, 0, 0, 0, UNTIMED), b"")
def test_a_state_is_written_as_its_message_is(key: str, epoch: int, header: bytes, payload: bytes) -> None:
    _, _, offset, seconds, nanos, flags = HEADER.unpack(header)
    group, sort, member = key_parts(key.encode())
    message = query_pb2.State(key=state_pb2.StateKey(group=group, sort=sort, member=member), payload=payload)
    message.position.epoch, message.position.offset = epoch, offset
    message.position.SetInParent()
    if not flags & UNTIMED:
        message.commit_time.SetInParent()
        message.commit_time.seconds, message.commit_time.nanos = seconds, nanos

    written = wire.state_bytes(key.encode(), wire.epoch_bytes(epoch), HEADER.unpack(header), header + payload)

    assert written == message.SerializeToString()


@given(FRESHNESS)
@example(Freshness(0, 0, 0, 0, 0, ""))
def test_a_freshness_is_written_as_its_message_is(freshness: Freshness) -> None:
    message = query_pb2.Freshness()
    fill_freshness(message, freshness)

    assert wire.freshness_bytes(freshness) == message.SerializeToString()
