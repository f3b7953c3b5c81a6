"""Whether watchers show the newest of the log of changes, and have got each row as a version that is newer."""

from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise

from drivers.push_watchers import PushWatchers
from drivers.topic_readers import OrderHistory, order_of
from statecast_client.push import Row


def assert_all_told(watchers: PushWatchers, history: OrderHistory) -> None:
    """Asserts that each watcher shows the newest of every order and of every range that it watches."""
    watchers.check()
    for watcher in watchers.all:
        for order_id in watcher.order_ids:
            # Copied at once, because rows come on a thread of the watcher.
            shown = [order_of(row) for row in [*watcher.watches[order_id].rows.values()]]
            newest = history.changes[order_id][-1]
            wanted = [newest.after] if newest.HasField("after") else []
            assert shown == wanted, f"{shown} is shown, not {newest}"
        for customer in watcher.customers:
            rows = [*watcher.watches[customer].rows.items()]
            assert {key: order_of(row) for key, row in rows} == history.orders_of(customer)


def assert_told_once(order_id: str, rows: Sequence[Row], history: OrderHistory) -> None:
    """Asserts that the rows of an order are versions of the log, each newer than the one before."""
    versions = [history.version(order_id, row) for row in rows]
    assert all(older < newer for older, newer in pairwise(versions)), f"{order_id} came in the versions {versions}"


def assert_range_told_once(customer: str, rows: Sequence[Row], history: OrderHistory) -> None:
    """Asserts that the rows of a range are versions of the log, each newer than the one before of its order."""
    by_order: defaultdict[str, list[Row]] = defaultdict(list)
    for row in rows:
        by_order[row.key].append(row)
    for order_id, of_order in by_order.items():
        assert_told_once(order_id, of_order, history)
    missing = history.orders_of(customer).keys() - by_order.keys()
    assert not missing, f"these orders of {customer} have never come: {missing}"
