"""Orders that change all the time while clients watch and read them through the gateway, and the clients' rows."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from itertools import count
from threading import Event
from typing import Self
from uuid import uuid4

from drivers.gateway_client import Gateway, GatewayClient
from drivers.order_source import STATUSES, OrderSource
from drivers.push_watchers import PushWatcher, PushWatchers
from drivers.rest_reader import RestReader
from drivers.topic_readers import OrderHistory
from drivers.update_assertions import assert_all_told, assert_range_told_once, assert_told_once
from statecast.orders.v1.order_pb2 import OrderChange
from statecast_client.push import Row
from testkit.background import in_background
from testkit.waiting import eventually, wait_until

BUSY_ORDERS = 16
CUSTOMERS = 4
WATCHERS = 4
READERS = 2
CHANGES_PER_S = 20
"""The highest rate. Each change waits for Kafka, and a slow machine does not make up for missed changes."""
PLACED_EVERY = 4
"""Of so many changes one places a new order; the others change busy ones."""
INTERVAL_MS = 100
SETTLED_S = 60


class OrderLoad:
    """Changes orders, with watchers of every busy order and of every customer's range, and with readers.

    Changes go through `source`; `values` grows by the values that it sends.
    """

    def __init__(self, gateway: Gateway, staff: GatewayClient, source: OrderSource, values: Sequence[bytes]) -> None:
        """Changes nothing yet. `staff` may see the orders of all customers."""
        self._prefix = f"load-{uuid4().hex[:6]}-"
        self._source = source
        self._values = values
        self.customers = [f"{self._prefix}customer-{number}" for number in range(CUSTOMERS)]
        self.busy = [f"{self._prefix}busy-{number:02}" for number in range(BUSY_ORDERS)]
        self._watchers = PushWatchers(
            gateway,
            staff,
            [
                PushWatcher(self.busy[number::WATCHERS], self.customers[number::WATCHERS], INTERVAL_MS)
                for number in range(WATCHERS)
            ],
        )
        self.readers = [RestReader(staff, order_id) for order_id in self.busy[:READERS]]

    @contextmanager
    def running(self) -> Iterator[Self]:
        """Yields once every client holds all rows; at the end of the block every client has the newest ones."""
        for number, order_id in enumerate(self.busy):
            self._source.place(self.customers[number % CUSTOMERS], {"item-a": 1}, order_id)
        with self._watchers, ExitStack() as work:
            eventually(self._assert_begun, timeout_s=SETTLED_S)
            for reader in self.readers:
                work.enter_context(in_background(reader.read_until))
            work.enter_context(in_background(self._change_until))
            yield self
            self.read_more()
            work.close()
            eventually(lambda: assert_all_told(self._watchers, self.history), timeout_s=SETTLED_S)

    def read_more(self, count: int = 10) -> None:
        """Returns after so many more answers to each reader."""
        for reader in self.readers:
            reader.read_more(count)

    @property
    def history(self) -> OrderHistory:
        """All changes that were made."""
        changes = map(OrderChange.FromString, self._values)
        return OrderHistory(each for each in changes if each.after.order_id.startswith(self._prefix))

    @property
    def updates(self) -> list[dict[str, list[Row]]]:
        """The rows of orders that each watcher was told, by the ids of the orders."""
        return [watcher.updates for watcher in self._watchers.all]

    def gaps(self) -> int:
        """Waits for the newest rows as of now; returns how many busy orders are not shown at them, or at later ones."""
        newest = {order_id: self.history.newest(order_id) for order_id in self.busy}

        def behind() -> list[str]:
            self._watchers.check()
            shown = {order: rows[-1] for updates in self.updates for order, rows in updates.items() if rows}
            history = self.history
            return [each for each in self.busy if history.version(each, shown[each]) < newest[each]]

        with suppress(AssertionError):
            wait_until(lambda: not behind(), "watchers show the newest rows", timeout_s=SETTLED_S)
        return len(behind())

    @property
    def reconnections(self) -> int:
        """How often a watcher has begun to connect after it was connected once."""
        return sum(watcher.attempts - 1 for watcher in self._watchers.all)

    def wait_changes(self, count: int = 20) -> None:
        """Returns when so many more changes have been made."""
        wanted = len(self._values) + count
        wait_until(lambda: len(self._values) >= wanted, "orders change")

    def assert_nothing_failed_or_was_missed(self) -> None:
        """Asserts that no read failed or went back, and that watchers were told ranges exactly, and no order twice."""
        for reader in self.readers:
            assert not reader.failures, f"reads failed: {reader.failures}"
            assert not reader.backward, f"reads went back: {reader.backward}"
        history = self.history
        for watcher in self._watchers.all:
            started_anew = watcher.started_anew
            assert watcher.attempts == 1 or not started_anew, f"resumed with a snapshot: {started_anew}"
            for order_id, updates in watcher.updates.items():
                assert_told_once(order_id, updates, history)
            for customer, range_updates in watcher.ranges.items():
                assert_range_told_once(customer, range_updates, history)

    def _assert_begun(self) -> None:
        self._watchers.check()
        assert all(watcher.has_begun for watcher in self._watchers.all)
        shown = {order for each in self._watchers.all for order in each.order_ids if each.watches[order].rows}
        assert shown == set(self.busy), f"not shown: {set(self.busy) - shown}"

    def _change_until(self, done: Event) -> None:
        numbers = count()
        while not done.wait(1 / CHANGES_PER_S):
            self._change(next(numbers))

    def _change(self, number: int) -> None:
        if number % PLACED_EVERY == 0:
            customer = self.customers[number // PLACED_EVERY % CUSTOMERS]
            self._source.place(customer, {"item-b": 1}, f"{self._prefix}once-{number:05}")
        else:
            place = number - number // PLACED_EVERY - 1
            self._source.advance(self.busy[place % BUSY_ORDERS], STATUSES[number % len(STATUSES)])
