"""Turns consumed records into rows, and decides which of them change a store.

A keyed topic has encoded StateRecords; this is the only module of the storage that decodes them. Any other topic is
`plain`: the newest value of each record key is stored as it is.
"""

from collections.abc import Callable, Sequence
from struct import error as StructError  # noqa: N812  the class has a lower-case name
from typing import Protocol

from google.protobuf.message import DecodeError

from query_service.errors import PoisonRecordError
from query_service.storage.store_keys import DELETED, FENCE_SIZE, HEADER, UNTIMED
from statecast.state.v1 import state_pb2
from statecast_service.key_forms import form_of_bytes

TOMBSTONE_HEADER = "statecast-state-record"

_MIN_SECONDS, _MAX_SECONDS = -62_135_596_800, 253_402_300_799  # the years 1 to 9999, the range of a Timestamp
_MAX_NANOS = 999_999_999
_MAX_MS = (_MAX_SECONDS + 1) * 1000

_parse = state_pb2.StateRecord.FromString
_pack = HEADER.pack

Headers = dict[str, str | bytes | None] | list[tuple[str, str | bytes | None]]
Replaced = tuple[bytes, bytes, bytes]


class Record(Protocol):
    """A consumed record, with the methods of confluent_kafka.Message.

    On a keyed topic the value is an encoded StateRecord, and None in a tombstone. A timestamp has its type, 0 for none,
    and Unix milliseconds.
    """

    def key(self) -> bytes | None: ...
    def value(self) -> bytes | None: ...
    def headers(self) -> Headers | None: ...
    def offset(self) -> int | None: ...
    def timestamp(self) -> tuple[int, int]: ...


Refuse = Callable[[Record, PoisonRecordError], None]
Untimed = Callable[[Record], None]


def decode_states(records: Sequence[Record], refuse: Refuse, untimed: Untimed) -> tuple[list[bytes], list[bytes]]:
    """Returns keys and values to store from records of a keyed topic; calls `refuse` for those that cannot be applied.

    A commit time outside the range of a Timestamp counts as unknown; `untimed` gets the record. The usual record is
    decoded inline, because a restore does nothing more often.
    """
    keys: list[bytes] = []
    values: list[bytes] = []
    for record in records:
        key, raw, flags = record.key(), record.value(), 0
        try:
            if not key or 0 in key or not key.isascii():
                key = _checked_key(key)
            if raw is None:
                raw, flags = _tombstone(record), DELETED
            state = _parse(raw)
            time = state.source.commit_time
            seconds, nanos = time.seconds, time.nanos
            if not seconds and not nanos:
                flags |= UNTIMED
            elif not (_MIN_SECONDS <= seconds <= _MAX_SECONDS and 0 <= nanos <= _MAX_NANOS):
                seconds, nanos, flags = 0, 0, flags | UNTIMED
                untimed(record)
            header = _pack(state.epoch, state.sequence, record.offset(), seconds, nanos, flags)
        except PoisonRecordError as error:
            refuse(record, error)
        except DecodeError:
            refuse(record, PoisonRecordError("value", "the value is not a statecast.state.v1.StateRecord"))
        except StructError as error:
            refuse(record, PoisonRecordError("value", f"a number of the StateRecord is out of range: {error}"))
        else:
            keys.append(key)
            values.append(header if flags & DELETED else header + state.payload)
    return keys, values


def decode_plain(records: Sequence[Record], refuse: Refuse, untimed: Untimed) -> tuple[list[bytes], list[bytes]]:
    """Returns the keys of records of a plain topic and the values to store; calls `refuse` for keys that name no row.

    The offset is the sequence: within a partition the later record wins. A key names a group, or a member of one, as
    on a keyed topic. A timestamp before 1970 or after the year 9999, for example from a producer that counts in
    microseconds, is unknown; `untimed` gets the record.
    """
    keys: list[bytes] = []
    values: list[bytes] = []
    for record in records:
        key = record.key()
        if not key or not _names_row(key):
            refuse(record, PoisonRecordError("key", form_of_bytes(key)))
            continue
        value, flags = record.value(), 0
        time_type, ms = record.timestamp()
        if time_type and 0 <= ms < _MAX_MS:
            seconds, rest_ms = divmod(ms, 1000)
        else:
            seconds, rest_ms, flags = 0, 0, UNTIMED
            if time_type:
                untimed(record)
        if value is None:
            flags |= DELETED
        offset = record.offset() or 0
        keys.append(key)
        values.append(_pack(0, offset, offset, seconds, rest_ms * 1_000_000, flags) + (value or b""))
    return keys, values


def newest_rows(
    keys: Sequence[bytes],
    values: Sequence[bytes],
    stored: Sequence[bytes | None],
    replaced: list[Replaced] | None = None,
) -> tuple[dict[bytes, bytes], int]:
    """Returns the rows to write, by key, and the number of records that were older.

    A record changes the store only if its (epoch, sequence), the fence, is higher than that of the stored value.
    `values[i]` is the i-th decoded record, `stored[i]` the stored value of its key. The fence comes first in both,
    big-endian and unsigned, so that bytes compare as (epoch, sequence) does. For each version that is replaced,
    `replaced` gets its key, the version, and its replacement.
    """
    if not any(stored):
        rows = dict(zip(keys, values, strict=True))
        if len(rows) == len(keys):
            return rows, 0
    rows = {}
    older = 0
    for key, value, before in zip(keys, values, stored, strict=True):
        current = rows.get(key) or before
        if current is None:
            rows[key] = value
        elif current[:FENCE_SIZE] >= value[:FENCE_SIZE]:
            older += 1
        else:
            rows[key] = value
            if replaced is not None:
                replaced.append((key, current, value))
    return rows, older


def _tombstone(record: Record) -> bytes:
    try:
        headers = record.headers() or ()
    except SystemError as error:  # the client raises it for a name that is not UTF-8
        raise PoisonRecordError("tombstone", "a header's name is not UTF-8") from error
    for name, value in headers.items() if isinstance(headers, dict) else headers:
        if name == TOMBSTONE_HEADER and isinstance(value, bytes):
            return value
    raise PoisonRecordError("tombstone", f"the tombstone has no header `{TOMBSTONE_HEADER}`")


def _checked_key(key: bytes | None) -> bytes:
    if not key or not _names_row(key):
        raise PoisonRecordError("key", form_of_bytes(key))
    return key


def _names_row(key: bytes) -> bool:
    if 0 in key and (key.count(0) != 2 or not all(key.split(b"\0"))):
        return False
    return key.isascii() or _is_text(key)


def _is_text(key: bytes) -> bool:
    try:
        key.decode()
    except UnicodeDecodeError:
        return False
    return True
