"""Scans of the engine in memory show one moment in spite of writes meanwhile."""

from itertools import islice

from hypothesis import given
from hypothesis import strategies as st

from query_service.storage.engine import MemoryEngine

KEYS = st.integers(0, 30).map(lambda number: b"%02d" % number)
WRITES = st.lists(st.tuples(st.sets(KEYS), st.sets(KEYS), st.integers(0, 5)), max_size=5)


@given(st.sets(KEYS), KEYS, KEYS, st.booleans(), WRITES)
def test_a_scan_shows_what_there_was_when_it_began(
    rows: set[bytes], first: bytes, end: bytes, reverse: bool, writes: list[tuple[set[bytes], set[bytes], int]]
) -> None:
    engine = MemoryEngine(slice_rows=4)
    engine.write([(key, b"old") for key in rows])
    expected = sorted(((key, b"old") for key in rows if first <= key < end), reverse=reverse)
    scan = engine.scan(first, end, reverse=reverse)
    scanned = list(islice(scan, 1))
    for puts, deletes, read in writes:
        engine.write([(key, b"new") for key in puts], deletes)
        scanned += islice(scan, read)
    scanned += scan

    assert scanned == expected
