"""Decodes a record of a keyed topic into a row's key and the value that stands on disk."""

from collections.abc import Callable, Sequence
from struct import error as StructError  # noqa: N812  the class has a lower-case name
from typing import Protocol

from google.protobuf.message import DecodeError

from query_service.errors import PoisonRecordError
from query_service.storage.store_keys import DELETED, HEADER, UNTIMED
from statecast.state.v1 import state_pb2

TOMBSTONE_HEADER = "statecast-state-record"

_parse = state_pb2.StateRecord.FromString
_pack = HEADER.pack


Headers = dict[str, str | bytes | None] | list[tuple[str, str | bytes | None]]


class Record(Protocol):
    """A consumed record, as confluent_kafka.Message has it."""

    def key(self) -> bytes | None:
        """The record's key."""

    def value(self) -> bytes | None:
        """The record's value: an encoded StateRecord on a keyed topic; None in a tombstone."""

    def headers(self) -> Headers | None:
        """The record's headers."""

    def offset(self) -> int | None:
        """The record's offset."""

    def timestamp(self) -> tuple[int, int]:
        """The kind of the record's time, 0 for none, and the time in Unix milliseconds."""


Skip = Callable[[Record, PoisonRecordError], None]


def decode_states(records: Sequence[Record], skip: Skip) -> tuple[list[bytes], list[bytes]]:
    """Returns the keys of records of a keyed topic and what to store for them; what cannot be applied is skipped.

    The usual record is decoded in place, because a restore does nothing more often; all others go the careful way.
    """
    keys: list[bytes] = []
    values: list[bytes] = []
    for record in records:
        key, raw = record.key(), record.value()
        try:
            if raw is None or not key or not key.isascii() or 0 in key:
                key, value = row_key_of(record), stored_value_of(record)
            else:
                state = _parse(raw)
                time = state.source.commit_time
                seconds, nanos = time.seconds, time.nanos
                flags = 0 if seconds or nanos else UNTIMED
                value = _pack(state.epoch, state.sequence, record.offset(), seconds, nanos, flags) + state.payload
        except PoisonRecordError as error:
            skip(record, error)
        except (DecodeError, StructError) as error:
            skip(record, _refusal(error))
        else:
            keys.append(key)
            values.append(value)
    return keys, values


def row_key_of(record: Record) -> bytes:
    """Returns the row that the record is about. Raises PoisonRecordError for a key that names no row."""
    key = record.key()
    if not key or key[0] == 0 or key[-1] == 0 or key.count(0) not in (0, 2):
        raise PoisonRecordError(f"the key {key!r} is neither `group` nor `group NUL sort NUL member`")
    if not key.isascii():
        try:
            key.decode()
        except UnicodeDecodeError as error:
            raise PoisonRecordError(f"the key {key!r} is not UTF-8") from error
    return key


def stored_value_of(record: Record) -> bytes:
    """Returns the header and payload to store. Raises PoisonRecordError for what is not a StateRecord."""
    raw = record.value()
    flags = 0
    if raw is None:
        raw, flags = _tombstone(record), DELETED
    try:
        state = _parse(raw)
        time = state.source.commit_time
        seconds, nanos = time.seconds, time.nanos
        if not seconds and not nanos:
            flags |= UNTIMED
        header = _pack(state.epoch, state.sequence, record.offset(), seconds, nanos, flags)
    except (DecodeError, StructError) as error:
        raise _refusal(error) from error
    return header if flags & DELETED else header + state.payload


def _refusal(error: Exception) -> PoisonRecordError:
    if isinstance(error, DecodeError):
        return PoisonRecordError("the value is not a statecast.state.v1.StateRecord")
    return PoisonRecordError(f"a number of the StateRecord is out of range: {error}")


def _tombstone(record: Record) -> bytes:
    headers = record.headers() or ()
    for name, value in headers.items() if isinstance(headers, dict) else headers:
        if name == TOMBSTONE_HEADER and isinstance(value, bytes):
            return value
    raise PoisonRecordError(f"the tombstone has no header `{TOMBSTONE_HEADER}`")
