"""Hides rows whose records are older than a store retains them, until they are purged."""

from collections.abc import Iterator

from query_service.storage.store_keys import DELETED, HEADER, UNTIMED, commit_ms_of

_GONE = HEADER.pack(0, 0, 0, 0, 0, DELETED | UNTIMED)


def unexpired(value: bytes | None, before_ms: int) -> bytes | None:
    """Returns a stored value, or None when it was committed before this time."""
    if value is None:
        return None
    commit_ms = commit_ms_of(value)
    return None if commit_ms is not None and commit_ms < before_ms else value


def unexpired_rows(rows: Iterator[tuple[bytes, bytes]], before_ms: int) -> Iterator[tuple[bytes, bytes]]:
    """Yields rows; those that were committed before this time as deleted, so that readers still count them."""
    for key, value in rows:
        yield key, unexpired(value, before_ms) or _GONE
