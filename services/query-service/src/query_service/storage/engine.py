"""What a store keeps its keys and values in."""

from collections.abc import Iterable, Iterator
from typing import Protocol


class Engine(Protocol):
    """Keys and values in the order of the keys' bytes, with atomic writes.

    Any thread may read; one thread at a time may write. A `durable` write survives `kill -9` of the process as soon as
    `write` returns, where the engine keeps anything at all; others survive once a durable write follows, and after a
    kill before that the engine is as it was after some earlier write. Every method raises StoreClosedError once the
    engine is closed, StoreUnusableError when its files are corrupt, and StoreFailedError when the disk refuses.
    """

    def get_many(self, keys: list[bytes]) -> list[bytes | None]:
        """Returns the values of keys, in their order."""

    def scan(self, first: bytes, end: bytes, *, reverse: bool = False) -> Iterator[tuple[bytes, bytes]]:
        """Yields keys and values with first <= key < end, as of the moment of the first one."""

    def write(
        self, puts: Iterable[tuple[bytes, bytes]], deletes: Iterable[bytes] = (), *, durable: bool = True
    ) -> None:
        """Stores all of `puts`, the last of a key, and then removes all of `deletes`, or does nothing and raises."""

    def close(self) -> None:
        """Lets go of everything; waits for reads in other threads to end. Closing again does nothing."""
