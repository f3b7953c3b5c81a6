"""Times as the contract has them; pure."""

from functools import lru_cache

from google.protobuf.timestamp_pb2 import Timestamp

US = 1_000_000


# Remembered because the same few stand in most changes, and making them is much of the work of a change; whoever puts
# one into a message copies it, so that sharing it is safe.
@lru_cache(maxsize=1024)
def timestamp(us: int) -> Timestamp:
    """Returns the time in microseconds since 1970 UTC as a message, which must not be changed."""
    return Timestamp(seconds=us // US, nanos=us % US * 1000)
