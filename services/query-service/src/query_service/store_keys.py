"""What stands on disk: the keys and values of one partition's RocksDB, and nothing else about it.

Rows stand under the record's own key, `group` or `group NUL sort NUL member`. A group is never empty and has no NUL,
so keys that start with NUL are free for what the store knows about itself:

    00 "format"                   the layout of this file, `FORMAT`, as decimal text
    00 "identity"                 `topic-id/partition` as text: what the rows were read from
    00 "next"                     >q  the offset of the first record that has not been applied
    00 "current"                  >q  the last time, in Unix milliseconds, at which everything had been applied
    00 "purged"                   >q  the highest offset of a deletion that is no longer remembered, or -1
    00 "deleted" 00 time key      one per remembered deletion; time is >Q Unix milliseconds of its arrival, and the
                                  value the deletion's offset as >q

A row's value is `HEADER` and then the payload:

    >Q epoch, >Q sequence         the fence: a record with a fence that is not higher is skipped
    >q offset                     of the record that was applied
    >q seconds, >I nanoseconds    the commit time at the source
    B  flags                      DELETED: a deletion that is still remembered; UNTIMED: the commit time is not known
"""

from struct import Struct
from typing import NamedTuple

FORMAT = 1

FORMAT_KEY = b"\0format"
IDENTITY_KEY = b"\0identity"
NEXT_KEY = b"\0next"
CURRENT_KEY = b"\0current"
PURGED_KEY = b"\0purged"
DELETED_PREFIX = b"\0deleted\0"
DELETED_END = b"\0deleted\1"

HEADER = Struct(">QQqqIB")
HEADER_SIZE = HEADER.size
FENCE_SIZE = 16
FLAGS_AT = HEADER_SIZE - 1
NUMBER = Struct(">q")
_OFFSET = Struct(">16xq")
_TIME = Struct(">Q")

DELETED = 1
UNTIMED = 2


class Header(NamedTuple):
    """The fields in front of a payload."""

    epoch: int
    sequence: int
    offset: int
    commit_seconds: int
    commit_nanos: int
    flags: int

    @property
    def deleted(self) -> bool:
        """Whether the value is a remembered deletion."""
        return bool(self.flags & DELETED)


def header_of(value: bytes) -> Header:
    """Returns what stands in front of the payload."""
    return Header._make(HEADER.unpack_from(value))


def offset_of(value: bytes) -> int:
    """Returns the offset of the record that was applied."""
    offset: int = _OFFSET.unpack_from(value)[0]
    return offset


def deletion_key(arrived_ms: int, key: bytes) -> bytes:
    """Returns the key under which a deletion is remembered; they sort by their time."""
    return DELETED_PREFIX + _TIME.pack(arrived_ms) + key


def deletions_before(arrived_ms: int) -> bytes:
    """Returns the key before which the deletions stand that arrived before this time."""
    return DELETED_PREFIX + _TIME.pack(arrived_ms)


def deleted_row(deletion: bytes) -> bytes:
    """Returns the row's key of a key made by `deletion_key`."""
    return deletion[len(DELETED_PREFIX) + _TIME.size :]


def row_key(group: str, sort: str, member: str) -> bytes:
    """Returns the key of a row; the parts have no NUL, and `sort` is empty where `member` is."""
    return f"{group}\0{sort}\0{member}".encode() if member else group.encode()


def key_parts(key: bytes) -> tuple[str, str, str]:
    """Returns group, sort and member of a row's key. Raises ValueError for a key that names no row."""
    parts = key.decode().split("\0")
    if not parts[0] or len(parts) not in (1, 3):
        raise ValueError(f"the key {key!r} is neither `group` nor `group NUL sort NUL member`")
    return (parts[0], parts[1], parts[2]) if len(parts) == 3 else (parts[0], "", "")


def group_range(group: str, sort_from: str, sort_to: str) -> tuple[bytes, bytes]:
    """Returns the first key of a range and the key to stop before. `sort_to` is exclusive; empty ends are open."""
    encoded = group.encode()
    first = encoded + b"\0" + sort_from.encode() if sort_from else encoded
    end = encoded + b"\0" + sort_to.encode() if sort_to else encoded + b"\1"
    return first, end
