"""Whether watchers were told all that is in the log of changes, and each change once."""

from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise

from drivers.push_watchers import PushWatchers
from drivers.topic_readers import UNKNOWN, OrderHistory, row_of
from statecast.orders.v1.order_pb2 import Order
from statecast.push.v1.range_pb2 import MemberChange, RangeChanged, RangeWatched
from statecast_client.push import RangeUpdate, Update


def assert_all_told(watchers: PushWatchers, history: OrderHistory) -> None:
    """Asserts that each watcher shows the newest of every order and of every range that it watches.

    Who knows that an order is deleted is not told that it was placed and deleted again meanwhile.
    """
    watchers.check()
    for watcher in watchers.all:
        for order_id in watcher.order_ids:
            last = watcher.updates[order_id][-1]
            newest = history.changes[order_id][-1]
            is_newest = history.version(order_id, last) == history.newest(order_id)
            stays_deleted = row_of(last) is None and not newest.HasField("after")
            assert is_newest or stays_deleted, f"{last} is shown, not {newest}"
        for customer in watcher.customers:
            assert _shown(customer, watcher.ranges[customer]) == history.orders_of(customer)


def _shown(customer: str, updates: Sequence[RangeUpdate]) -> dict[str, Order]:
    """What somebody holds of a customer's orders who has applied all that was told."""
    held: dict[str, Order] = {}
    for each in updates:
        if isinstance(each, RangeWatched):
            held.clear()
            continue
        member, row = each.key.member, row_of(each)
        if each.change == MemberChange.MEMBER_CHANGE_ENTERED:
            assert member not in held, f"{member} has entered the range of {customer} twice"
        if row is None:
            held.pop(member, None)
        else:
            held[member] = row
    return held


def assert_told_once(
    order_id: str, updates: Sequence[Update], history: OrderHistory, *, placed_first: bool = False
) -> None:
    """Asserts that the updates of an order are versions of the log, each newer than the one before.

    `placed_first` says that the order was placed before anyone watched it.
    """
    versions = [history.version(order_id, each) for each in updates]
    assert _is_rising(versions), f"{order_id} was told in the versions {versions}"
    if history.newest(order_id) == 0:
        assert versions == ([0] if placed_first else [UNKNOWN, 0]), f"{order_id} was told in the versions {versions}"


def assert_range_told_once(customer: str, updates: Sequence[RangeUpdate], history: OrderHistory) -> None:
    """Asserts that the updates of a range are those of the log, each once, after one snapshot."""
    assert [place for place, each in enumerate(updates) if isinstance(each, RangeWatched)] == [0]
    by_member: defaultdict[str, list[RangeChanged]] = defaultdict(list)
    for each in updates:
        if isinstance(each, RangeChanged):
            by_member[each.key.member].append(each)
    for order_id, changes in by_member.items():
        assert _is_rising([each.position.offset for each in changes]), f"told more than once: {changes}"
        versions = [history.version(order_id, each) for each in changes]
        assert versions == sorted(versions), f"{order_id} was told to watchers of {customer} in the versions {versions}"
        rows = [history.version(order_id, each) for each in changes if each.HasField("row")]
        assert _is_rising(rows), f"{order_id} was told to watchers of {customer} in the versions {rows}"
    placed_once = {order for order, changes in history.changes.items() if len(changes) == 1}
    for order_id in placed_once & history.orders_of(customer).keys():
        assert len(by_member[order_id]) == 1, f"{order_id} was told to watchers of {customer}: {by_member[order_id]}"


def _is_rising(numbers: Sequence[int]) -> bool:
    return all(older < newer for older, newer in pairwise(numbers))
