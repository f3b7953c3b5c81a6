"""Writes responses of reads as bytes, without building messages: a stored payload is passed through.

Protobuf's wire format, as much of it as is needed: a message is its fields one after the other, each a tag (the field's
number times 8, plus 0 for a number or 2 before a length) and its value; a number is a varint, seven bits a byte
with the lowest first, negative ones as 64 bits in two's complement; a text, bytes or nested message is its length as a
varint, and then itself. Fields that are 0 or empty are left out. The fields stand in the order of their numbers, so
that the bytes are those which the generated classes serialize; the tests compare the two.

It is the only place that knows how a stored value becomes a `State`.
"""

from collections.abc import Sequence
from functools import lru_cache

from query_service.storage.progress import Freshness
from query_service.storage.store_keys import HEADER, HEADER_SIZE, UNTIMED
from statecast.query.v1 import query_pb2

_CHUNK = 0x3FFF  # 14 bits: two bytes of a varint
_LAST = tuple(bytes((n,)) if n < 0x80 else bytes((n & 127 | 128, n >> 7)) for n in range(_CHUNK + 1))
_MORE = tuple(
    bytes((n & 127 | 128, n >> 7 | 128)) for n in range(_CHUNK + 1)
)  # both take 1 MB, and a third of the time
_MASK = 0xFFFFFFFFFFFFFFFF

FIRST = b"\x0a"  # the tag of field 1 with a length
SECOND = b"\x12"  # the tag of field 2 with a length
THIRD = b"\x1a"  # the tag of field 3 with a length
header_fields = HEADER.unpack_from  # plain, for speed: its fields are those of store_keys.Header


def varint(number: int) -> bytes:
    """Returns a number of at most 64 bits."""
    if 0 <= number <= _CHUNK:
        return _LAST[number]
    if 0 < number < 1 << 28:
        return _MORE[number & _CHUNK] + _LAST[number >> 14]
    encoded = b""
    number &= _MASK
    while number > _CHUNK:
        encoded += _MORE[number & _CHUNK]
        number >>= 14
    return encoded + _LAST[number]


def sized(tag: bytes, body: bytes) -> bytes:
    """Returns a field with a length."""
    return tag + varint(len(body)) + body


def state_bytes(key: bytes, epoch: bytes, header: tuple[int, ...], value: bytes) -> bytes:
    """Returns the `State` of a stored value with this header; `epoch` comes from `epoch_bytes`.

    The hottest code of the service: it calls little.
    """
    _, _, offset, seconds, nanos, flags = header
    size = len(key)
    key_field = FIRST + _LAST[size + 2] + FIRST + _LAST[size] + key if size < 126 and b"\0" not in key else _key(key)
    at = epoch + b"\x10" + varint(offset) if offset else epoch
    time_field = b""
    if not flags & UNTIMED:
        time = (_seconds(seconds) if seconds else b"") + (b"\x10" + varint(nanos) if nanos else b"")
        time_field = b"\x1a" + _LAST[len(time)] + time
    payload = value[HEADER_SIZE:]
    if not payload:
        return b"".join((key_field, SECOND, _LAST[len(at)], at, time_field))
    return b"".join((key_field, SECOND, _LAST[len(at)], at, time_field, b"\x22", varint(len(payload)), payload))


@lru_cache(maxsize=256)
def epoch_bytes(epoch: int) -> bytes:
    """Returns the field of a `Position`."""
    return b"\x08" + varint(epoch) if epoch else b""


def freshness_bytes(freshness: Freshness) -> bytes:
    """Returns the `Freshness` of a read that was not forwarded; without the places of a batch."""
    partition, lag_records, lag_ms, epoch, applied_offset, answered_by = freshness
    at = epoch_bytes(epoch) + (b"\x10" + varint(applied_offset) if applied_offset else b"")
    return b"".join(
        (
            b"\x08" + varint(partition) if partition else b"",
            b"\x10" + varint(lag_records) if lag_records else b"",
            b"\x18" + varint(lag_ms) if lag_ms else b"",
            b"\x22",
            _LAST[len(at)],
            at,
            _instance(answered_by),
        )
    )


def places_bytes(keys: Sequence[int], ranges: Sequence[int] = ()) -> bytes:
    """Returns the fields of a `Freshness` with the places of keys and ranges in a batch."""
    return query_pb2.Freshness(keys=keys, ranges=ranges).SerializeToString()


def index_bytes(index: int) -> bytes:
    """Returns the field of a `KeyResult` or `RangeResult` with its place in a batch."""
    return b"\x08" + varint(index) if index else b""


def _key(key: bytes) -> bytes:
    """Returns field 1, a `StateKey`, of any key."""
    group, sort, member = key.split(b"\0") if b"\0" in key else (key, b"", b"")
    fields = ((FIRST, group), (SECOND, sort), (THIRD, member))
    return sized(FIRST, b"".join(sized(tag, part) for tag, part in fields if part))


@lru_cache(maxsize=1024)
def _seconds(seconds: int) -> bytes:
    return b"\x08" + varint(seconds)


@lru_cache(maxsize=16)
def _instance(name: str) -> bytes:
    return sized(b"\x2a", name.encode()) if name else b""
