"""Writes responses of reads as bytes, without building messages: a stored payload is passed through.

Protobuf's wire format, as much of it as is needed: a message is its fields one after the other, each a tag (the field's
number times 8, plus 0 for a number or 2 for what has a length) and its value; a number is a varint, seven bits a byte
with the lowest first, negative ones as 64 bits in two's complement; a text, bytes or nested message is its length as a
varint, and then itself. Fields that are 0 or empty are left out. The fields stand in the order of their numbers, so
that the bytes are those which the generated classes serialize; the tests compare the two.
"""

from collections.abc import Sequence
from functools import lru_cache

from query_service.storage.progress import Freshness
from query_service.storage.store_keys import HEADER, HEADER_SIZE, UNTIMED
from statecast.query.v1 import query_pb2

_MASK = 0xFFFFFFFFFFFFFFFF
_SMALL = tuple(bytes((number,)) for number in range(128))
_unpack = HEADER.unpack_from

FIRST = b"\x0a"  # the tag of field 1 with a length
SECOND = b"\x12"  # the tag of field 2 with a length


def varint(number: int) -> bytes:
    """Returns a number of at most 64 bits; those of up to five bytes, which nearly all are, fast."""
    if 0 <= number < 0x80:
        return _SMALL[number]
    if 0 < number < 0x4000:
        return bytes((number & 127 | 128, number >> 7))
    if 0 < number < 0x200000:
        return bytes((number & 127 | 128, number >> 7 & 127 | 128, number >> 14))
    if 0 < number < 0x10000000:
        return bytes((number & 127 | 128, number >> 7 & 127 | 128, number >> 14 & 127 | 128, number >> 21))
    if 0 < number < 0x800000000:
        low = (number & 127 | 128, number >> 7 & 127 | 128, number >> 14 & 127 | 128, number >> 21 & 127 | 128)
        return bytes((*low, number >> 28))
    number &= _MASK
    encoded = bytearray()
    while number > 127:
        encoded.append(number & 127 | 128)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)


def sized(tag: bytes, body: bytes) -> bytes:
    """Returns a field with a length."""
    return tag + varint(len(body)) + body


def state_bytes(key: bytes, epoch: int, value: bytes) -> bytes:
    """Returns the `State` of a stored value; `key` is its key in the store, with NUL between its parts."""
    _, _, offset, seconds, nanos, flags = _unpack(value)
    at = position_bytes(epoch, offset)
    parts = (_key(key), b"\x12", _SMALL[len(at)], at)
    payload = value[HEADER_SIZE:]
    time = b""
    if not flags & UNTIMED:
        encoded = (_seconds(seconds) if seconds else b"") + (b"\x10" + varint(nanos) if nanos else b"")
        time = b"\x1a" + _SMALL[len(encoded)] + encoded
    if not payload:
        return b"".join((*parts, time))
    return b"".join((*parts, time, b"\x22", varint(len(payload)), payload))


def position_bytes(epoch: int, offset: int) -> bytes:
    """Returns a `Position`, also one of zeros, which is empty."""
    return _epoch(epoch) + b"\x10" + varint(offset) if offset else _epoch(epoch)


def freshness_bytes(freshness: Freshness) -> bytes:
    """Returns the `Freshness` of a read that was not forwarded; without the places of a batch."""
    partition, lag_records, lag_ms, epoch, applied_offset, answered_by = freshness[:6]
    at = position_bytes(epoch, applied_offset)
    return b"".join(
        (
            b"\x08" + varint(partition) if partition else b"",
            b"\x10" + varint(lag_records) if lag_records else b"",
            b"\x18" + varint(lag_ms) if lag_ms else b"",
            b"\x22",
            _SMALL[len(at)],
            at,
            _instance(answered_by),
        )
    )


def places_bytes(keys: Sequence[int]) -> bytes:
    """Returns the field of a `Freshness` with the places of keys in a batch."""
    return query_pb2.Freshness(keys=keys).SerializeToString()


def _key(key: bytes) -> bytes:
    """Returns field 1, a `StateKey`."""
    if b"\0" not in key:
        size = len(key)
        if size < 126:
            return b"\x0a" + _SMALL[size + 2] + b"\x0a" + _SMALL[size] + key
        return sized(FIRST, sized(FIRST, key))
    group, sort, member = key.split(b"\0")
    return sized(FIRST, sized(FIRST, group) + (sized(SECOND, sort) if sort else b"") + sized(b"\x1a", member))


@lru_cache(maxsize=256)
def _epoch(epoch: int) -> bytes:
    return b"\x08" + varint(epoch) if epoch else b""


@lru_cache(maxsize=1024)
def _seconds(seconds: int) -> bytes:
    return b"\x08" + varint(seconds)


@lru_cache(maxsize=16)
def _instance(name: str) -> bytes:
    return sized(b"\x2a", name.encode()) if name else b""
