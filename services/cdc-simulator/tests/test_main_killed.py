"""The command, killed in the middle of its work and started again, against a real broker; for each domain."""

import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
from confluent_kafka import murmur2

from cdc_simulator.change_events import LoggedChange, change_event
from cdc_simulator.domain import DatabaseParameters, Domain, next_mutation
from cdc_simulator.domains import choose_domain, domain_names
from statecast.odds.v1 import match_pb2
from statecast.orders.v1 import order_pb2
from testkit.cdc_simulator import memory_tables
from testkit.topics import create_topic

if TYPE_CHECKING:
    from conftest import Process, ReadTopic

PARAMETERS = DatabaseParameters(seed=5, rows=300, customers=20, items=30)
LIMIT = 2000
PARTITIONS = 4
TIMES = ("placed_at", "updated_at", "estimated_delivery", "booked_at", "departs_at", "starts_at", "created_at")
UNCHANGING = {
    "orders": ("customer_id", "placed_at", "currency"),
    "bookings": ("booked_at", "origin"),
    "open_positions": (),
    "matches": ("sport", "home", "away"),
    "markets": ("match_id", "name"),
    "stores": ("city",),
}
"""The fields that stay the same in all steps of a row, by table."""
LEGAL_STATUSES: dict[str, dict[int, set[Any]]] = {
    "orders": {
        order_pb2.ORDER_STATUS_PLACED: {order_pb2.ORDER_STATUS_PAID, order_pb2.ORDER_STATUS_CANCELLED},
        order_pb2.ORDER_STATUS_PAID: {order_pb2.ORDER_STATUS_PACKED, order_pb2.ORDER_STATUS_CANCELLED},
        order_pb2.ORDER_STATUS_PACKED: {order_pb2.ORDER_STATUS_SHIPPED, order_pb2.ORDER_STATUS_CANCELLED},
        order_pb2.ORDER_STATUS_SHIPPED: {order_pb2.ORDER_STATUS_DELIVERED},
    },
    "matches": {
        match_pb2.MATCH_STATUS_SCHEDULED: {match_pb2.MATCH_STATUS_ABOUT_TO_START, match_pb2.MATCH_STATUS_CANCELLED},
        match_pb2.MATCH_STATUS_ABOUT_TO_START: {match_pb2.MATCH_STATUS_IN_PLAY, match_pb2.MATCH_STATUS_CANCELLED},
        match_pb2.MATCH_STATUS_IN_PLAY: {match_pb2.MATCH_STATUS_ENDED, match_pb2.MATCH_STATUS_CANCELLED},
    },
}
"""The statuses that may follow each status, by table; after any other status a row can only be deleted."""

Changes = Mapping[int, Any]
"""Changes by log sequence number, each as the message of its table."""


@pytest.fixture(params=domain_names())
def domain(request: pytest.FixtureRequest) -> Domain:
    return choose_domain(request.param)


@pytest.fixture
def process(tmp_path: Path, kafka: str, process_type: "type[Process]", domain: Domain) -> "Iterator[Process]":
    process = process_type(tmp_path, kafka, f"{{topic}}-{uuid4().hex[:8]}")
    for table in domain.tables:
        create_topic(kafka, topic_of(process, table.topic), PARTITIONS)
    with process:
        yield process


@pytest.mark.timeout(300)
def test_it_leaves_no_gap_and_goes_on_as_if_it_had_not_been_killed(
    process: "Process", read_topic: "ReadTopic", domain: Domain
) -> None:
    expected = without_a_kill(domain)
    first = max(expected) - LIMIT
    settings = {"domain": domain.name, "limit": LIMIT, **PARAMETERS._asdict()}
    for part in (1, 2):
        # So slow that it still has changes to make when it is seen to have made enough.
        process.start(rate=300, **settings)
        process.wait_until(reached(process, first + part * LIMIT // 4))
        process.kill()
    process.start(rate=5000, **settings)

    assert process.wait_end() == 0, process.log
    changes = published(process, read_topic, domain)
    assert {lsn: without_times(change) for lsn, change in changes.items()} == changes_of(expected)
    assert len({change.source.epoch for change in changes.values()}) == 1
    times = [changes[lsn].source.commit_time.ToNanoseconds() for lsn in sorted(changes)]
    assert times == sorted(times)
    assert_the_end_is_the_tables(changes, process.database, domain)
    assert events(process, read_topic, domain) == events_of(expected)


def topic_of(process: "Process", topic: str) -> str:
    return process.topic.replace("{topic}", topic)


def reached(process: "Process", lsn: int) -> Callable[[], bool]:
    return lambda: process.acknowledged() >= lsn


def without_a_kill(domain: Domain) -> Changes:
    """Returns the log of a run that nobody kills, computed in memory and without times."""
    now_us = 1_724_848_496_123_456
    tables = memory_tables(domain, PARAMETERS, now_us)
    definitions = {table.name: table for table in domain.tables}
    rows = [(table, row) for table in domain.tables for _, row in sorted(tables[table.name].rows.items())]
    logged = [LoggedChange(table, lsn, "", 0, True, None, row) for lsn, (table, row) in enumerate(rows, 1)]
    for lsn in range(len(rows) + 1, len(rows) + 1 + LIMIT):
        mutation = next_mutation(domain, tables, PARAMETERS, lsn, now_us)
        tables[mutation.table].apply(mutation)
        logged.append(LoggedChange(definitions[mutation.table], lsn, "", 0, False, mutation.before, mutation.after))
    return {change.lsn: without_times(change_event(change, 0, 0)) for change in logged}


def changes_of(expected: Changes) -> Changes:
    """Returns those of the tables that have changes."""
    return {lsn: change for lsn, change in expected.items() if change and "after" in change.DESCRIPTOR.fields_by_name}


def events_of(expected: Changes) -> Mapping[str, Any]:
    """Returns the new rows of the tables that have events, by their ids."""
    changes = changes_of(expected)
    return {primary_key(row): row for lsn, row in expected.items() if row is not None and lsn not in changes}


def events(process: "Process", read_topic: "ReadTopic", domain: Domain) -> Mapping[str, Any]:
    """Returns the rows on the topics of events without duplicates and times, by their ids."""
    rows: dict[str, Any] = {}
    for table in domain.tables:
        for partition, key, value in read_topic(topic_of(process, table.topic)) if table.has_events else ():
            row = without_times(table.value.FromString(value))
            assert key.decode() == row.store_id
            assert partition == murmur2(key, PARTITIONS)
            assert rows.setdefault(primary_key(row), row) == row
    return rows


def without_times(change: Any) -> Any:
    """Returns the change or the event without the fields that differ from run to run; None of none."""
    if change is None:
        return None
    timeless = type(change).FromString(change.SerializeToString())
    sides = {"before", "after"} & set(change.DESCRIPTOR.fields_by_name)
    for field in ("source", "captured_at") if sides else ():
        timeless.ClearField(field)
    for row in [getattr(timeless, side) for side in sides if timeless.HasField(side)] if sides else [timeless]:
        for field in set(TIMES) & set(row.DESCRIPTOR.fields_by_name):
            row.ClearField(field)
    return timeless


def published(process: "Process", read_topic: "ReadTopic", domain: Domain) -> Changes:
    """Returns the changes of all tables that have them, without duplicates, which may differ in capture time only."""
    changes: dict[int, Any] = {}
    for table in (each for each in domain.tables if not each.has_events):
        name_of_key = {"bookings": "customer_id"}.get(table.name)
        for partition, key, value in read_topic(topic_of(process, table.topic)):
            change: Any = table.value.FromString(value)
            change.ClearField("captured_at")
            row = change.after if change.HasField("after") else change.before
            assert change.source.table == table.name
            assert key.decode() == (getattr(row, name_of_key) if name_of_key else primary_key(row))
            assert partition == murmur2(key, PARTITIONS)
            assert changes.setdefault(change.source.log_sequence_number, change) == change
    return changes


def assert_the_end_is_the_tables(changes: Changes, database: Path, domain: Domain) -> None:
    end: dict[str, dict[str, Any]] = {table.name: {} for table in domain.tables}
    for lsn in sorted(changes):
        assert_a_legal_step(changes[lsn], end[changes[lsn].source.table])
    with closing(sqlite3.connect(database)) as connection:
        for table in (each for each in domain.tables if not each.has_events):
            images = connection.execute(table.select.replace("number = ?", "TRUE"))
            rows = [table.row_of(image) for (image,) in images]
            assert end[table.name] == {table.row_id(row): table.message(row) for row in rows}


def assert_a_legal_step(change: Any, rows: dict[str, Any]) -> None:
    """Asserts that the change follows from the current rows, and applies it to them."""
    table = change.source.table
    if change.HasField("before"):
        before = rows.pop(primary_key(change.before))
        assert change.before == before
        if change.HasField("after"):
            for field in UNCHANGING[table]:
                assert getattr(change.after, field) == getattr(before, field)
            if table in LEGAL_STATUSES:
                followers = LEGAL_STATUSES[table][before.status]
                assert change.after.status in {before.status, *followers}
    if change.HasField("after"):
        assert primary_key(change.after) not in rows
        rows[primary_key(change.after)] = change.after


def primary_key(row: Any) -> str:
    return str(getattr(row, row.DESCRIPTOR.fields_by_number[1].name))
