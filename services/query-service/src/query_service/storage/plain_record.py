"""Decodes a record of any topic: the newest value of each record key, as it is."""

from collections.abc import Sequence

from query_service.errors import PoisonRecordError
from query_service.storage.record import Record, Skip
from query_service.storage.store_keys import DELETED, HEADER, UNTIMED

_pack = HEADER.pack


def decode_plain(records: Sequence[Record], skip: Skip) -> tuple[list[bytes], list[bytes]]:
    """Returns the keys of records and what to store for them; those that name no row are skipped.

    The offset is the sequence: within a partition the later record wins. A key names a group, or a member of one, as
    on a keyed topic.
    """
    keys: list[bytes] = []
    values: list[bytes] = []
    for record in records:
        key = record.key()
        if not key or not _names_row(key):
            skip(record, PoisonRecordError(f"the key {key!r} is neither UTF-8 text nor `group NUL sort NUL member`"))
            continue
        kind, ms = record.timestamp()
        value = record.value()
        flags = (0 if kind else UNTIMED) | (0 if value is not None else DELETED)
        offset = record.offset() or 0
        keys.append(key)
        seconds, rest = divmod(ms, 1000) if kind else (0, 0)
        values.append(_pack(0, offset, offset, seconds, rest * 1_000_000, flags) + (value or b""))
    return keys, values


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
