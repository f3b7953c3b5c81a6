"""The command, killed in the middle of its work and started again, against a real broker."""

import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cdc_simulator.change_events import order_change
from cdc_simulator.initial_rows import initial_rows
from cdc_simulator.logged_change import LoggedChange
from cdc_simulator.order_row import Shop
from cdc_simulator.testing import MemoryTable
from cdc_simulator.workload import next_mutation
from statecast.orders.v1.order_pb2 import OrderChange

if TYPE_CHECKING:
    from conftest import Process, ReadTopic

SHOP = Shop(seed=5, orders=300, customers=20, items=30)
LIMIT = 3000
LAST = SHOP.orders + LIMIT


@pytest.mark.kafka
@pytest.mark.timeout(300)
def test_it_leaves_no_gap_and_goes_on_as_if_it_had_not_been_killed(process: "Process", read_topic: "ReadTopic") -> None:
    for part in (1, 2, 3):
        running = process.start(rate=1000, limit=LIMIT, **SHOP._asdict())
        process.wait_until(reached(process, SHOP.orders + part * LIMIT // 5))
        running.kill()
        running.wait()
    status = process.start(rate=5000, limit=LIMIT, **SHOP._asdict()).wait(process.patience_s)

    assert status == 0, process.log()
    changes = by_log_sequence_number(read_topic(process.topic))
    assert sorted(changes) == list(range(1, LAST + 1))
    assert len({change.source.epoch for change in changes.values()}) == 1
    times = [changes[lsn].source.commit_time.ToNanoseconds() for lsn in sorted(changes)]
    assert times == sorted(times)
    assert_the_same_as_without_a_kill(changes)
    assert_the_end_is_the_table(changes, process.database)


def reached(process: "Process", lsn: int) -> Callable[[], bool]:
    return lambda: process.acknowledged() >= lsn


def by_log_sequence_number(records: list[tuple[int, bytes, OrderChange]]) -> dict[int, OrderChange]:
    """The changes without their repetitions, which must be equal but for the time of capture."""
    changes: dict[int, OrderChange] = {}
    for _, _, change in records:
        change.ClearField("captured_at")
        assert changes.setdefault(change.source.log_sequence_number, change) == change
    return changes


def assert_the_same_as_without_a_kill(changes: Mapping[int, OrderChange]) -> None:
    now_us = 1_724_848_496_123_456
    table = MemoryTable(initial_rows(SHOP, now_us), SHOP.orders + 1)
    for lsn in range(SHOP.orders + 1, LAST + 1):
        mutation = next_mutation(table, SHOP, lsn, now_us)
        table.apply(mutation)
        before, after = getattr(mutation, "before", None), getattr(mutation, "after", None)
        expected = order_change(LoggedChange(lsn, "", 0, False, before, after), 0, 0)
        assert without_times(changes[lsn]) == without_times(expected)


def without_times(change: OrderChange) -> OrderChange:
    timeless = OrderChange.FromString(change.SerializeToString())
    for field in ("source", "captured_at"):
        timeless.ClearField(field)
    for order in [getattr(timeless, side) for side in ("before", "after") if timeless.HasField(side)]:
        for field in ("placed_at", "updated_at", "estimated_delivery"):
            order.ClearField(field)
    return timeless


def assert_the_end_is_the_table(changes: Mapping[int, OrderChange], database: Path) -> None:
    end: dict[str, tuple[str, int, int]] = {}
    for lsn in sorted(changes):
        after = changes[lsn].after
        if changes[lsn].HasField("after"):
            end[after.order_id] = (after.customer_id, after.total_cents, after.updated_at.ToMicroseconds())
        else:
            del end[changes[lsn].before.order_id]
    with closing(sqlite3.connect(database)) as connection:
        rows = connection.execute("SELECT order_id, customer_id, total_cents, updated_at_us FROM orders").fetchall()
    assert end == {row[0]: row[1:] for row in rows}
