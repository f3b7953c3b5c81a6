"""Debezium's JSON as changes of the contract; the samples are in debezium/."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import Row

from statecast.orders.v1.order_pb2 import ORDER_STATUS_PAID, Order
from stream_processor.steps.debezium_forms import MESSAGE, UNWRAPPED
from stream_processor.steps.decode import decode
from stream_processor.steps.flow import checked_changes
from stream_processor.steps.keys import TRUNCATE
from testkit.stream_processor.changes import START, order
from testkit.stream_processor.micro_batches import BatchesOf, PipelineOf
from testkit.stream_processor.one_batch import OneBatch

SAMPLES = Path(__file__).parent / "debezium"
SOURCE = {"topic": "orders", "message": "statecast.orders.v1.OrderChange", "format": "debezium-json"}


def sample(name: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((SAMPLES / f"{name}.json").read_text())
    return content


def with_row(**columns: object) -> dict[str, Any]:
    """Returns a creation with columns of its row replaced."""
    created = sample("create")
    return {**created, "after": {**created["after"], **columns}}


def at(**times: object) -> dict[str, Any]:
    """Returns a creation with other times of its commit."""
    created = sample("create")
    return {**created, "source": {**created["source"], **times}}


def others(connector: str) -> str:
    """Returns the reason of a change of a database that is not read."""
    return f"changes of {connector} are not read; postgresql, mysql and mariadb are"


OF_OTHERS: list[dict[str, Any]] = [
    {"connector": "oracle", "scn": "2868546", "commit_scn": "2868567", "ts_ms": 1, "table": "ORDERS"},
    {"connector": "sqlserver", "change_lsn": "00000027:00000758:0003", "commit_lsn": "00000027:00000758:0005"},
    {"connector": "mongodb", "ord": 1, "collection": "orders"},
    {"connector": "db2", "change_lsn": "00000000:00000000:00000000"},
    {"connector": "vitess", "vgtid": "[]"},
    {"connector": "spanner", "low_watermark": 1},
]
"""The `source` of databases from which no changes are read."""
NO_CHANGES: list[tuple[dict[str, Any] | bytes, str]] = [
    (b"", "the value is no JSON object"),
    (b"null", "the value is no JSON object"),
    (b"[1]", "the value is no JSON object"),
    (b'{"op": "c", "after": {"order_id', "the value is no JSON object"),
    (b'{"op": "c\xff"}', "the value is no UTF-8"),
    (b"{}", "op is not set: this is no change by Debezium"),
    (b'{"op": "x"}', "op is none of c, u, d, r, t: x"),
    ({**sample("create"), "after": "text"}, "after is no JSON object"),
    ({**sample("create"), "source": 1}, "source is no JSON object"),
    ({**sample("create"), "source": {"lsn": None}}, "source.lsn is not a log sequence number"),
    ({**sample("snapshot"), "source": {"lsn": None, "sequence": "[]"}}, "source.lsn is not a log sequence number"),
    ({"op": "m", "message": {}}, "op is none of c, u, d, r, t: m"),
    (
        {**sample("create"), "op": "i", "source": {"connector": "cassandra", "file": "CommitLog-6.log"}},
        others("cassandra"),
    ),
    *[({**with_row(), "source": source}, others(source["connector"])) for source in OF_OTHERS],
    ({**sample("create"), "after": '{"_id": 1}', "source": {"connector": "mongodb"}}, others("mongodb")),
    ({**sample("create"), "after": {}}, "after has no columns"),
    (
        {**sample("create"), "after": {"a": 1, "City": None}},
        "after has no column of statecast.orders.v1.Order, but a, City",
    ),
    (
        {**sample("create"), "after": {"ORDER_ID": "order-1", "Status": None, "order_id": "order-2"}},
        "after has Status, statecast.orders.v1.Order has it in other letters",
    ),
    (at(ts_us=253_402_300_800_000_000), "source.ts_us is no time of the years 1970 to 9999: 253402300800000000"),
    (
        at(ts_us=None, ts_ms=9_223_372_036_854_775_807),
        "source.ts_ms is no time of the years 1970 to 9999: 9223372036854775807",
    ),
    (at(ts_us=None, ts_ms=-1), "source.ts_ms is no time of the years 1970 to 9999: -1"),
    (at(ts_us="soon"), "source.ts_us is no time of the years 1970 to 9999: soon"),
    ({**sample("create"), "ts_us": 10**30}, f"ts_us is no time of the years 1970 to 9999: {10**30}"),
    (with_row(total_cents=10**400), f"after.total_cents is not a whole number of type int64: {'1' + '0' * 59}…"),
    (with_row(status="lost"), "after.status is not a name in statecast.orders.v1.OrderStatus: lost"),
    (with_row(total_cents=1.5), "after.total_cents is not a whole number of type int64: 1.5"),
    (with_row(items="[}"), "after.items does not fit: it must be JSON, a list of statecast.orders.v1.OrderItem"),
    (
        with_row(items=[{"quantity": "many"}]),
        "after.items.quantity is not a whole number of type int32: many",
    ),
    (with_row()["after"], UNWRAPPED),
    ({"schema": {}, "payload": {**with_row()["after"], "__deleted": "true"}}, UNWRAPPED),
    (
        with_row(items=[None]),
        "after.items has an element that is NULL: only a field of type string can take the array, as JSON",
    ),
]


LSN = 26_376_440
"""As a real connector gave it to a row and a change, after a blocking snapshot of an idle table."""
ITEMS = sample("create")["after"]["items"]
VALUES: list[Any] = [["a", None], [[1, 2], []], {"a": None, "b": "ü"}]
"""Arrays and an object, for a column that is read as a text."""


def placed(name: str, **place: object) -> dict[str, Any]:
    """Returns a sample with another place in the log."""
    return {**sample(name), "source": {**sample(name)["source"], **place}}


SOUND: dict[str, dict[str, Any]] = {
    **{name: sample(name) for name in ("snapshot", "create", "update", "delete", "truncate", "message", "with-schema")},
    "items as text": with_row(items=ITEMS),
    "items as JSON": with_row(items=json.loads(ITEMS)),
    "no items": with_row(items=None),
    **{f"value {at}": with_row(tracking_number=value) for at, value in enumerate(VALUES)},
    "another column": with_row(internal_note="x"),
    "no currency": {**sample("create"), "after": {"order_id": "order-1"}},
    "no source": {**sample("create"), "source": None},
    "read after a commit": placed("snapshot", lsn=None, sequence='["24","32"]'),
    "read before any": placed("snapshot", lsn=None, sequence='[null,"16"]'),
    "read there": placed("snapshot", lsn=LSN, sequence=f'["{LSN}","{LSN}"]'),
    "changed there": placed("update", lsn=LSN, sequence=f'["{LSN}","{LSN}"]'),
}
"""Changes, and a record that is passed over."""


@pytest.fixture(scope="module")
def lines(shipped: PipelineOf, batch: OneBatch) -> dict[str, Row]:
    """SOUND, decoded."""
    pipeline = shipped("orders-by-key", source={**SOURCE, "epoch": 3})
    decoded = batch.decoded(pipeline, *map(encoded, SOUND.values()))
    assert [line.problem for line in decoded] == [None] * len(SOUND)
    return dict(zip(SOUND, decoded, strict=True))


def encoded(value: dict[str, Any] | bytes) -> bytes:
    return value if isinstance(value, bytes) else json.dumps(value).encode()


def test_each_operation_is_a_change(lines: dict[str, Row]) -> None:
    snapshot, create, update, delete = [lines[name].change for name in ("snapshot", "create", "update", "delete")]

    assert [change.operation for change in (snapshot, create, update, delete)] == [
        "OPERATION_SNAPSHOT",
        "OPERATION_CREATE",
        "OPERATION_UPDATE",
        "OPERATION_DELETE",
    ]
    assert snapshot.source.snapshot
    assert not create.source.snapshot
    assert (delete.before.order_id, delete.after, lines["delete"].payload) == ("order-2", None, None)


def test_a_truncation_is_a_change_without_rows(lines: dict[str, Row]) -> None:
    line = lines["truncate"]

    assert (line.change.operation, line.sequence) == (TRUNCATE, 5)
    assert (line.change.before, line.change.after, line.payload) == (None, None, None)


def test_the_source_is_that_of_the_log(lines: dict[str, Row]) -> None:
    change = lines["create"].change

    source = change.source
    assert (source.epoch, source.log_sequence_number, source.transaction_id, source.table) == (3, 2, "902", "orders")
    assert source.commit_time == START.replace(tzinfo=None)
    assert change.captured_at == START.replace(tzinfo=None) + timedelta(microseconds=120456)
    assert lines["no source"].change.source is None


def test_the_payload_is_the_contracts_row(lines: dict[str, Row]) -> None:
    wanted = order(customer="customer-2", second=3)
    wanted.status = ORDER_STATUS_PAID
    wanted.updated_at.FromDatetime(datetime(2024, 8, 28, 12, 0, 3, tzinfo=UTC))

    assert Order.FromString(bytes(lines["snapshot"].payload)) == order()
    assert Order.FromString(bytes(lines["update"].payload)) == wanted


def test_a_schema_beside_the_payload_says_what_values_are(lines: dict[str, Row]) -> None:
    row = lines["with-schema"].change.after

    assert (row.total_cents, row.estimated_delivery) == (100, "2024-08-28")
    assert row.placed_at == START.replace(tzinfo=None) + timedelta(microseconds=1)
    assert row.updated_at == START.replace(tzinfo=None) + timedelta(milliseconds=2)


def test_columns_may_be_json_or_text_that_holds_json_or_may_be_missing(lines: dict[str, Row]) -> None:
    as_text = lines["items as text"].change

    assert [line.item_id for line in as_text.after["items"]] == ["item-1"]
    assert as_text == lines["items as JSON"].change == lines["another column"].change
    assert lines["no items"].change.after["items"] == []
    assert [json.loads(lines[f"value {at}"].change.after.tracking_number) for at in range(len(VALUES))] == VALUES
    assert lines["no currency"].change.after.currency is None


def test_what_is_no_change_says_why(shipped: PipelineOf, batch: OneBatch) -> None:
    lines = batch.decoded(shipped("orders-by-key", source=SOURCE), *[encoded(value) for value, _ in NO_CHANGES])

    assert [line.problem for line in lines] == [problem for _, problem in NO_CHANGES]
    assert [(line.change, line.payload) for line in lines] == [(None, None)] * len(NO_CHANGES)


def test_a_message_in_the_log_is_passed_over(lines: dict[str, Row]) -> None:
    assert (lines["message"].passed_over, lines["message"].change) == (MESSAGE, None)


def test_texts_and_numbers_in_hostile_json_are_exact_or_refused(shipped: PipelineOf, batch: OneBatch) -> None:
    plain = encoded(with_row(tracking_number="X", total_cents=1))
    texts = [b'"' + b"x" * 1_000_000 + b'"', b'"a\\u0000b"', b"123456789012345678901234567890"]
    texts += [b'"\\ud83d\\ude00"', b'"\\\\ud800"', b"12345678901234567.25"]
    refused = [b"[" * 100_000 + b"]" * 100_000, b'"\\ud800"', b'"\xff"']

    values = [plain.replace(b'"X"', text) for text in [*texts, *refused]]
    lines = batch.decoded(shipped("orders-by-key", source=SOURCE), *values)

    shown = [line.change.after.tracking_number for line in lines[: len(texts)]]
    numbers = ["123456789012345678901234567890", "12345678901234567.25"]
    assert shown == ["x" * 1_000_000, "a\0b", numbers[0], "\U0001f600", "\\ud800", numbers[1]]
    assert [line.problem for line in lines[len(texts) :]] == [
        "the value is no JSON object",
        "the value has half of a character (a lone surrogate as \\ud800)",
        "the value is no UTF-8",
    ]


def test_a_row_that_was_read_between_changes_has_the_last_commit_before_it(lines: dict[str, Row]) -> None:
    after_a_commit, before_any = lines["read after a commit"], lines["read before any"]

    assert (after_a_commit.sequence, after_a_commit.change.source.log_sequence_number) == (-24, 24)
    assert before_any.sequence == -16


def test_a_row_that_a_snapshot_has_read_is_told_from_a_change_with_the_same_number(lines: dict[str, Row]) -> None:
    row, update = lines["read there"], lines["changed there"]

    assert (row.sequence, update.sequence) == (-LSN, LSN)
    assert row.change.source.log_sequence_number == LSN


KEYS: list[tuple[bytes, tuple[list[str], str | None] | None]] = [
    (b"order-1", None),
    (b"7", None),
    (b'{"order_id": "a:b"}', (["order_id"], "a:b")),
    (b'{"schema": {"type": "struct"}, "payload": {"order_id": 7}}', (["order_id"], "7")),
    (b'{"order_id": "a:b", "customer_id": "c\\\\"}', (["customer_id", "order_id"], "c\\\\:a\\:b")),
    (b'{"order_id": "a", "customer_id": null}', (["customer_id", "order_id"], None)),
    (b'{"order_id": null, "customer_id": "a"}', (["customer_id", "order_id"], None)),
]
"""Keys of records, and their content."""


def test_the_records_key_names_the_columns_of_the_primary_key(shipped: PipelineOf, batch: OneBatch) -> None:
    records = [(key, encoded(sample("create"))) for key, _ in KEYS]

    lines = batch.decoded(shipped("orders-by-key", source=SOURCE), *records)

    contents = [line.record_key and (line.record_key.columns, line.record_key.text) for line in lines]
    assert contents == [content for _, content in KEYS]


def test_a_column_of_the_records_key_that_the_file_lacks_is_a_problem_unless_it_says_source_key(
    shipped: PipelineOf, batch: OneBatch
) -> None:
    keys = b'{"order_id": "order-1", "currency": "EUR"}', b'{"order_id": "order-1", "currency": null}'
    pipelines = [
        shipped("orders-by-key", source=SOURCE),
        shipped("orders-by-customer", source=SOURCE),
        shipped("orders-by-customer", source={**SOURCE, "key": "order_id"}),
        shipped("orders-by-key", source=SOURCE, group_by=["order_id", "currency"]),
        shipped("orders-by-customer", source=SOURCE, group_by="currency"),
    ]

    records = batch.records(*[(key, encoded(sample("create"))) for key in keys])
    decoded = decode(records, pipelines[0], batch.functions).cache()

    lines = [checked_changes(decoded, each).orderBy("offset").collect() for each in pipelines]

    assert [line.problem for line, _ in lines] == [
        "the record's key has currency, which group_by lacks: two rows would be one",
        "the record's key has currency, which keep.members.key lacks: two rows would be one",
        None,
        None,
        None,
    ]
    assert lines[-1][1].problem == "after.order_id is empty, a row needs its key"


def test_a_row_whose_group_is_null_is_in_no_group(shipped: PipelineOf, batch: OneBatch) -> None:
    pipeline, nobody = shipped("orders-by-customer", source=SOURCE), encoded(with_row(customer_id=None))

    # Neither a record nor a letter.
    assert batch.lines(pipeline, nobody).collect() == []


def test_what_a_delete_may_have_made_up_is_no_value(shipped: PipelineOf, batch: OneBatch) -> None:
    made_up = {"customer_id": "", "status": "", "items": "", "total_cents": 0, "currency": "EUR", "placed_at": ""}
    epoch = "1970-01-01T00:00:00Z"
    deleted = {**sample("delete"), "before": {"order_id": "order-2", **made_up, "updated_at": epoch}}

    [checked] = batch.checked(shipped("orders-by-customer", source=SOURCE), encoded(deleted))

    assert (checked.problem, checked.change.before.order_id) == (None, "order-2")
    assert (checked.before.customer_id, checked.before.status, checked.before.updated_at) == (None, None, None)
    assert not checked.knows_before


def test_a_made_up_value_that_no_key_can_hold_does_not_keep_a_row_from_being_deleted(
    shipped: PipelineOf, batch: OneBatch, batches_of: BatchesOf
) -> None:
    members = {"members": {"key": "order_id", "sort": "total_cents"}}
    pipeline = shipped("orders-by-customer", source=SOURCE, keep=members)
    row = {"order_id": "order-2", "customer_id": "customer-1", "total_cents": -1}
    deleted, updated = ({**sample(name), "before": row} for name in ("delete", "update"))

    delete, update = batch.checked(pipeline, encoded(deleted), encoded(updated))

    assert (delete.problem, delete.before, delete.change.before.order_id) == (None, None, "order-2")
    assert update.problem == "before.total_cents is negative, its text would not sort as it does"

    played = batches_of(pipeline)
    for each in (sample("create"), deleted):
        played.add([encoded(each)])
    played.run()

    created, gone = played.written
    assert (gone.key, gone.value, created.value is None) == (created.key, None, False)
