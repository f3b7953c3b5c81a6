"""Changes of orders that go on beside a test, and the wait until they and their readers have gone on for a while."""

import threading
from collections.abc import Sequence
from contextlib import AbstractContextManager

from drivers.order_readers import OrderReader
from drivers.order_source import OrderChanges
from testkit.background import in_background
from testkit.waiting import eventually


def making_changes(changes: OrderChanges, per_s: float) -> AbstractContextManager[None]:
    """Makes so many changes a second, on a thread of its own, in the block."""

    def make_until(done: threading.Event) -> None:
        while not done.wait(1 / per_s):
            changes.make_next()

    return in_background(make_until)


def until_more(changes: OrderChanges, readers: Sequence[OrderReader], count: int) -> None:
    """Waits until so many more changes have been made, and each reader has read more often than that."""
    made, reads = changes.made_count, [reader.reads for reader in readers]

    def gone_on() -> None:
        assert changes.made_count >= made + count
        assert all(reader.reads > before + count for reader, before in zip(readers, reads, strict=True))

    eventually(gone_on, timeout_s=90)
