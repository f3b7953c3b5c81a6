"""Debezium's JSON as changes of the contract; the samples are in debezium/."""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark program uses

from statecast.orders.v1.order_pb2 import ORDER_STATUS_PAID, Order
from stream_processor.pipeline.pipeline import Pipeline
from stream_processor.steps.debezium_forms import MESSAGE, UNWRAPPED
from stream_processor.steps.decode import decode
from stream_processor.steps.flow import checked_changes, written_records
from stream_processor.steps.functions import Functions
from stream_processor.steps.keys import TRUNCATE
from testkit.stream_processor.changes import START, order
from testkit.stream_processor.micro_batches import MicroBatches

pytestmark = pytest.mark.spark

SAMPLES = Path(__file__).parent / "debezium"
SOURCE = {"topic": "orders", "message": "statecast.orders.v1.OrderChange", "format": "debezium-json"}


def sample(name: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((SAMPLES / f"{name}.json").read_text())
    return content


def with_row(**columns: object) -> dict[str, Any]:
    """A creation with columns of its row replaced."""
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


@pytest.fixture
def read(
    functions: Functions, records: Callable[..., DataFrame], shipped: Callable[..., Pipeline]
) -> Callable[..., list[Row]]:
    """Decodes JSON values, or bytes as they are."""

    def decoded(*values: dict[str, Any] | bytes, epoch: int | None = None) -> list[Row]:
        pipeline = shipped("orders-by-key", source={**SOURCE, "epoch": epoch})
        raw = [value if isinstance(value, bytes) else json.dumps(value).encode() for value in values]
        return decode(records(*raw), pipeline, functions).orderBy("offset").collect()

    return decoded


def test_each_operation_is_a_change(read: Callable[..., list[Row]]) -> None:
    snapshot, create, update, delete = read(*[sample(name) for name in ("snapshot", "create", "update", "delete")])

    assert [line.problem for line in (snapshot, create, update, delete)] == [None] * 4
    assert [line.change.operation for line in (snapshot, create, update, delete)] == [
        "OPERATION_SNAPSHOT",
        "OPERATION_CREATE",
        "OPERATION_UPDATE",
        "OPERATION_DELETE",
    ]
    assert snapshot.change.source.snapshot
    assert not create.change.source.snapshot
    assert (delete.change.before.order_id, delete.change.after, delete.payload) == ("order-2", None, None)


def test_a_truncation_is_a_change_without_rows(read: Callable[..., list[Row]]) -> None:
    [line] = read(sample("truncate"))

    assert (line.problem, line.change.operation, line.sequence) == (None, TRUNCATE, 5)
    assert (line.change.before, line.change.after, line.payload) == (None, None, None)


def test_the_source_is_that_of_the_log(read: Callable[..., list[Row]]) -> None:
    [line] = read(sample("create"), epoch=3)

    source = line.change.source
    assert (source.epoch, source.log_sequence_number, source.transaction_id, source.table) == (3, 2, "902", "orders")
    assert source.commit_time == START.replace(tzinfo=None)
    assert line.change.captured_at == START.replace(tzinfo=None) + timedelta(microseconds=120456)


def test_the_payload_is_the_contracts_row(read: Callable[..., list[Row]]) -> None:
    [snapshot, update] = read(sample("snapshot"), sample("update"))

    wanted = order(customer="customer-2", second=3)
    wanted.status = ORDER_STATUS_PAID
    wanted.updated_at.FromDatetime(datetime(2024, 8, 28, 12, 0, 3, tzinfo=UTC))
    assert Order.FromString(bytes(snapshot.payload)) == order()
    assert Order.FromString(bytes(update.payload)) == wanted


def test_a_schema_beside_the_payload_says_what_values_are(read: Callable[..., list[Row]]) -> None:
    [line] = read(sample("with-schema"))

    row = line.change.after
    assert (row.total_cents, row.estimated_delivery) == (100, "2024-08-28")
    assert row.placed_at == START.replace(tzinfo=None) + timedelta(microseconds=1)
    assert row.updated_at == START.replace(tzinfo=None) + timedelta(milliseconds=2)


def test_lines_may_be_json_or_text_that_holds_json(read: Callable[..., list[Row]]) -> None:
    text = sample("create")["after"]["items"]

    as_text, as_json, none = read(with_row(items=text), with_row(items=json.loads(text)), with_row(items=None))

    assert [line.item_id for line in as_text.change.after["items"]] == ["item-1"]
    assert as_text.change == as_json.change
    assert none.change.after["items"] == []


def test_a_string_takes_an_array_and_an_object_as_json(read: Callable[..., list[Row]]) -> None:
    values: list[Any] = [["a", None], [[1, 2], []], {"a": None, "b": "ü"}]

    lines = read(*[with_row(tracking_number=value) for value in values])

    assert [json.loads(line.change.after.tracking_number) for line in lines] == values


def test_columns_that_the_contract_does_not_know_are_left_out(read: Callable[..., list[Row]]) -> None:
    plain, wider = read(with_row(), with_row(internal_note="x"))

    assert wider.change == plain.change


def test_what_is_no_change_says_why(read: Callable[..., list[Row]]) -> None:
    lines = read(*[value for value, _ in NO_CHANGES])

    assert [line.problem for line in lines] == [problem for _, problem in NO_CHANGES]
    assert [(line.change, line.payload) for line in lines] == [(None, None)] * len(NO_CHANGES)


def test_a_message_in_the_log_is_passed_over(read: Callable[..., list[Row]]) -> None:
    [line] = read(sample("message"))

    assert (line.passed_over, line.problem, line.change) == (MESSAGE, None, None)


def test_a_column_that_is_missing_is_unset(read: Callable[..., list[Row]]) -> None:
    created = with_row()
    del created["after"]["currency"]

    [line] = read(created)

    assert (line.problem, line.change.after.currency) == (None, None)


def test_texts_and_numbers_in_hostile_json_are_exact_or_refused(read: Callable[..., list[Row]]) -> None:
    plain = json.dumps(with_row(tracking_number="X", total_cents=1)).encode()
    texts = [b'"' + b"x" * 1_000_000 + b'"', b'"a\\u0000b"', b"123456789012345678901234567890"]
    texts += [b'"\\ud83d\\ude00"', b'"\\\\ud800"', b"12345678901234567.25"]
    refused = [b"[" * 100_000 + b"]" * 100_000, b'"\\ud800"', b'"\xff"']

    lines = read(*[plain.replace(b'"X"', text) for text in [*texts, *refused]])

    shown = [line.change.after.tracking_number for line in lines[: len(texts)]]
    numbers = ["123456789012345678901234567890", "12345678901234567.25"]
    assert shown == ["x" * 1_000_000, "a\0b", numbers[0], "\U0001f600", "\\ud800", numbers[1]]
    assert [line.problem for line in lines[len(texts) :]] == [
        "the value is no JSON object",
        "the value has half of a character (a lone surrogate as \\ud800)",
        "the value is no UTF-8",
    ]


def test_a_change_without_source_has_none(read: Callable[..., list[Row]]) -> None:
    [line] = read({**sample("create"), "source": None})

    assert line.change.source is None


def test_a_row_that_was_read_between_changes_has_the_last_commit_before_it(
    read: Callable[..., list[Row]],
) -> None:
    source = {**sample("snapshot")["source"], "lsn": None}

    after_a_commit, before_any, unknown = read(
        *[
            {**sample("snapshot"), "source": {**source, "sequence": text}}
            for text in ('["24","32"]', '[null,"16"]', "[]")
        ]
    )

    assert (after_a_commit.sequence, after_a_commit.change.source.log_sequence_number) == (-24, 24)
    assert before_any.sequence == -16
    assert unknown.problem == "source.lsn is not a log sequence number"


def test_a_row_that_a_snapshot_has_read_is_told_from_a_change_with_the_same_number(
    read: Callable[..., list[Row]],
) -> None:
    lsn = 26_376_440  # as a real connector gave it to both, after a blocking snapshot of an idle table
    at = {"lsn": lsn, "sequence": f'["{lsn}","{lsn}"]'}

    changes = [sample("snapshot"), sample("update")]
    row, update = read(*[{**change, "source": {**change["source"], **at}} for change in changes])

    assert (row.sequence, update.sequence) == (-lsn, lsn)
    assert row.change.source.log_sequence_number == lsn


@pytest.mark.parametrize(
    ("key", "columns", "text"),
    [
        (b"order-1", None, None),
        (b"7", None, None),
        (b'{"order_id": "a:b"}', ["order_id"], "a:b"),
        (b'{"schema": {"type": "struct"}, "payload": {"order_id": 7}}', ["order_id"], "7"),
        (b'{"order_id": "a:b", "customer_id": "c\\\\"}', ["customer_id", "order_id"], "c\\\\:a\\:b"),
        (b'{"order_id": "a", "customer_id": null}', ["customer_id", "order_id"], None),
        (b'{"order_id": null, "customer_id": "a"}', ["customer_id", "order_id"], None),
    ],
)
def test_the_records_key_names_the_columns_of_the_primary_key(
    functions: Functions,
    records: Callable[..., DataFrame],
    shipped: Callable[..., Pipeline],
    key: bytes,
    columns: list[str] | None,
    text: str | None,
) -> None:
    changes = records(json.dumps(sample("create")).encode()).withColumn("key", F.lit(key))

    [line] = decode(changes, shipped("orders-by-key", source=SOURCE), functions).collect()

    assert (line.record_key and (line.record_key.columns, line.record_key.text)) == (columns and (columns, text))


def test_a_column_of_the_records_key_that_the_file_lacks_is_a_problem_unless_it_says_source_key(
    functions: Functions, records: Callable[..., DataFrame], shipped: Callable[..., Pipeline]
) -> None:
    composite = F.lit(b'{"order_id": "order-1", "currency": "EUR"}')
    changes = records(json.dumps(sample("create")).encode()).withColumn("key", composite)
    pipelines = [
        shipped("orders-by-key", source=SOURCE),
        shipped("orders-by-customer", source=SOURCE),
        shipped("orders-by-customer", source={**SOURCE, "key": "order_id"}),
        shipped("orders-by-key", source=SOURCE, group_by=["order_id", "currency"]),
        shipped("orders-by-customer", source=SOURCE, group_by="currency"),
    ]

    lines = [checked_changes(decode(changes, each, functions), each).first() for each in pipelines]

    assert [line and line.problem for line in lines] == [
        "the record's key has currency, which group_by lacks: two rows would be one",
        "the record's key has currency, which keep.members.key lacks: two rows would be one",
        None,
        None,
        None,
    ]


def test_a_key_of_the_record_that_holds_null_is_a_problem(
    functions: Functions, records: Callable[..., DataFrame], shipped: Callable[..., Pipeline]
) -> None:
    composite = F.lit(b'{"order_id": "order-1", "currency": null}')
    changes = records(json.dumps(sample("create")).encode()).withColumn("key", composite)
    pipeline = shipped("orders-by-customer", source=SOURCE, group_by="currency")

    line = checked_changes(decode(changes, pipeline, functions), pipeline).first()

    assert line is not None
    assert line.problem == "after.order_id is empty, a row needs its key"


def test_a_row_whose_group_is_null_is_in_no_group(
    functions: Functions, records: Callable[..., DataFrame], shipped: Callable[..., Pipeline]
) -> None:
    pipeline = shipped("orders-by-customer", source=SOURCE)
    nobody = json.dumps(with_row(customer_id=None)).encode()

    checked = checked_changes(decode(records(nobody), pipeline, functions), pipeline).first()

    assert checked is not None
    assert (checked.problem, checked.after.customer_id) == (None, None)
    assert written_records([records(nobody)], pipeline, 4, 1, functions).collect() == []


def test_what_a_delete_may_have_made_up_is_no_value(
    functions: Functions, records: Callable[..., DataFrame], shipped: Callable[..., Pipeline]
) -> None:
    pipeline = shipped("orders-by-customer", source=SOURCE)
    made_up = {"customer_id": "", "status": "", "items": "", "total_cents": 0, "currency": "EUR", "placed_at": ""}
    epoch = "1970-01-01T00:00:00Z"
    deleted = {**sample("delete"), "before": {"order_id": "order-2", **made_up, "updated_at": epoch}}

    checked = checked_changes(decode(records(json.dumps(deleted).encode()), pipeline, functions), pipeline).first()

    assert checked is not None
    assert (checked.problem, checked.change.before.order_id) == (None, "order-2")
    assert (checked.before.customer_id, checked.before.status, checked.before.updated_at) == (None, None, None)
    assert not checked.knows_before


def test_a_made_up_value_that_no_key_can_hold_does_not_keep_a_row_from_being_deleted(
    tmp_path: Path,
    spark: SparkSession,
    functions: Functions,
    records: Callable[..., DataFrame],
    shipped: Callable[..., Pipeline],
) -> None:
    members = {"members": {"key": "order_id", "sort": "total_cents"}}
    pipeline = shipped("orders-by-customer", source=SOURCE, keep=members)
    row = {"order_id": "order-2", "customer_id": "customer-1", "total_cents": -1}
    deleted = {**sample("delete"), "before": row}
    updated = {**sample("update"), "before": row}

    changes = records(*[json.dumps(each).encode() for each in (deleted, updated)])
    delete, update = checked_changes(decode(changes, pipeline, functions), pipeline).orderBy("offset").collect()

    assert (delete.problem, delete.before, delete.change.before.order_id) == (None, None, "order-2")
    assert update.problem == "before.total_cents is negative, its text would not sort as it does"

    played = MicroBatches(tmp_path, pipeline, spark, functions)
    for each in (sample("create"), deleted):
        played.add([json.dumps(each).encode()])
    played.run()

    created, gone = played.written
    assert (gone.key, gone.value, created.value is None) == (created.key, None, False)
