"""Random rows of the served stores, and lookups of them, for tests that compare two ways to answer."""

from hypothesis import strategies as st

from statecast.query.v1 import query_pb2
from statecast.state.v1 import state_pb2
from testkit.served_stores import STORES

EPOCH = 77
NAMES = [store.name for store in STORES]
KEYS = ["a", "b", "c", "d", "é", "order-17", "c" * 200, "x" * 600, "a\0s\0m", "a\0s\0n", "b\x001\x002"]

Writes = list[tuple[str, str, bytes | None, int | None]]
"""Store, key with NUL between its parts, payload or None for a deletion, and its age in seconds, if it has a time."""


def state_key(key: str) -> state_pb2.StateKey:
    """Returns the message of a key with NUL between its parts."""
    return state_pb2.StateKey(**dict(zip(("group", "sort", "member"), key.split("\0"), strict=False)))


WRITES = st.lists(
    st.tuples(
        st.sampled_from(NAMES),
        st.sampled_from(KEYS),
        st.none() | st.binary(max_size=300),
        st.none() | st.integers(0, 120),
    ),
    max_size=30,
)
STATE_KEYS = st.sampled_from([*KEYS, "absent", "e"]).map(state_key)
AFTER = st.none() | st.builds(
    state_pb2.Position, epoch=st.sampled_from([0, EPOCH, EPOCH, 78]), offset=st.integers(-1, 12)
)
KEY_QUERIES = st.builds(query_pb2.KeyQuery, key=STATE_KEYS, after=AFTER)
