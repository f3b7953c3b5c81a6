"""The form of the data on disk: the keys and values of one partition's RocksDB, and nothing else about it.

A row is stored under the record's own key, `group` or `group NUL sort NUL member`. A group is never empty and has no
NUL, so keys that start with NUL are free for the store's notes about itself:

    00 "format"                   the layout of these keys and values, `FORMAT`, as decimal text
    00 "identity"                 `topic-id/partition` as text: the source of the rows
    00 "kind"                     how the rows were made, see `kind_of`
    00 "next"                     >q  the offset of the first record that has not been applied
    00 "current"                  >q  the last time, in Unix milliseconds, at which everything had been applied
    00 "purged"                   >q  the highest offset of the deletions with a purged marker, or -1
    00 "marker" 00 key            the deletion marker of a row: a header alone. It stands apart from the rows, so that
                                  deleted rows cost a scan nothing. Where there is a row, the row is newer.
    00 "deleted" 00 time key      one per deletion marker; time is >Q Unix milliseconds of its arrival, and the value
                                  the deletion's offset as >q
    00 "expires" 00 time key      in stores that retain rows for a time: one per record, by its commit time, alike
    00 "replaced" 00 time key     in stores that keep versions for a time: one per version, by the time at which it was
                                  replaced; the value is the version's offset
    00 "spread"                   partitioner and number of partitions by which the keys were checked, as text
    00 "misplaced" 00 key         of a row with a group of another partition; empty. At most MAX_MISPLACED.
    00 "version" 00 size key offset
                                  a version that was replaced, as it was stored; size is >I, offset >q

A row's value is `HEADER` and then the payload:

    >Q epoch, >Q sequence         the fence: a record is skipped unless its fence is higher
    >q offset                     of the record that was applied
    >q seconds, >I nanoseconds    the commit time at the source
    B  flags                      DELETED: the value is a deletion marker; UNTIMED: the commit time is not known
"""

from struct import Struct
from typing import NamedTuple

from query_service.storage.stores_file import StoreDefinition

FORMAT = 2

FORMAT_KEY = b"\0format"
IDENTITY_KEY = b"\0identity"
NEXT_KEY = b"\0next"
CURRENT_KEY = b"\0current"
PURGED_KEY = b"\0purged"
KIND_KEY = b"\0kind"
MARKER_PREFIX = b"\0marker\0"
ROWS_FROM, ROWS_TO = b"\x01", b"\xff"
MARKERS = (MARKER_PREFIX, MARKER_PREFIX + b"\xff")  # no UTF-8 text begins with it
DELETED_PREFIX = b"\0deleted\0"
EXPIRES_PREFIX = b"\0expires\0"
REPLACED_PREFIX = b"\0replaced\0"
VERSION_PREFIX = b"\0version\0"
SPREAD_KEY = b"\0spread"
MISPLACED_PREFIX = b"\0misplaced\0"

HEADER = Struct(">QQqqIB")
HEADER_SIZE = HEADER.size
FENCE_SIZE = 16
FLAGS_AT = HEADER_SIZE - 1
NUMBER = Struct(">q")
_OFFSET = Struct(">16xq")
_COMMIT = Struct(">24xqI")
_TIME = Struct(">Q")
_SIZE = Struct(">I")

MAX_OFFSET = (1 << 63) - 1
MAX_MISPLACED = 100
"""How many misplaced keys a partition notes; with so many, all keys of the store are in doubt."""

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
        return bool(self.flags & DELETED)


def header_of(value: bytes) -> Header:
    return Header._make(HEADER.unpack_from(value))


def offset_of(value: bytes) -> int:
    offset: int = _OFFSET.unpack_from(value)[0]
    return offset


def commit_ms_of(value: bytes) -> int | None:
    """Returns the commit time in Unix milliseconds; None when it is not known."""
    if value[FLAGS_AT] & UNTIMED:
        return None
    seconds, nanos = _COMMIT.unpack_from(value)
    return int(seconds * 1000 + nanos // 1_000_000)


def due_key(prefix: bytes, due_ms: int, key: bytes) -> bytes:
    """Returns the key of an entry that is due for a row at a time; such keys sort by their time, and then by row."""
    return prefix + _TIME.pack(max(0, due_ms)) + key


def number_of(packed: bytes | None, default: int = 0) -> int:
    return default if packed is None else int(NUMBER.unpack(packed)[0])


def due_row(prefix: bytes, due: bytes) -> bytes:
    return due[len(prefix) + _TIME.size :]


def version_key(key: bytes, offset: int) -> bytes:
    """Returns the key of an older version of a row; such keys sort by row and then by offset."""
    return VERSION_PREFIX + _SIZE.pack(len(key)) + key + NUMBER.pack(offset)


def identity_of(topic_id: str, partition: int) -> bytes:
    return f"{topic_id}/{partition}".encode()


def kind_of(definition: StoreDefinition) -> bytes:
    """Returns how rows are made and which of them are kept; a directory of another kind is rebuilt."""
    history = definition.history
    words: list[str] = [definition.format]
    if definition.retain is not None:
        words.append("retained")
    if history is not None:
        words.append("versions" if history.age is None else "versions-for-a-time")
    return " ".join(words).encode()


def rules_of(definition: StoreDefinition) -> str:
    """Returns how rows are made and how long they are kept, with all numbers, as one line."""
    history = definition.history
    words: list[str] = [definition.format, definition.partitioner]
    if definition.retain is not None:
        words.append(f"retained {definition.retain_ms} ms")
    if history is not None:
        words.append(f"versions for {definition.versions_ms} ms" if history.age else f"versions {history.versions}")
    return ", ".join(words)


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
