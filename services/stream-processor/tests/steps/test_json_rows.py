"""JSON of other makers as rows of a table: read where it is unambiguous, else named by its likely form."""

import gzip
import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from uuid import UUID

import pytest
from pyspark.sql import Row
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark program uses

from stream_processor.steps.decode import decode
from testkit.stream_processor.micro_batches import PipelineOf
from testkit.stream_processor.one_batch import OneBatch

WRITTEN = datetime(2024, 8, 28, 12, tzinfo=UTC)
STORE = {"topic": "t", "message": "statecast.sales.v1.Store", "format": "table", "values": "json"}
INVOICE = STORE | {"message": "statecast.sales.v1.Invoice"}
ORDER = STORE | {"message": "statecast.orders.v1.Order"}
Read = Callable[..., list[Row]]

pytestmark = pytest.mark.timeout(600)


@pytest.fixture
def read(shipped: PipelineOf, batch: OneBatch) -> Read:
    """The checked changes of values, each under the key `s` or (key, value), each object as JSON."""

    def run(name: str, source: dict[str, str], values: Sequence[object]) -> list[Row]:
        pairs = [each if isinstance(each, tuple) else (b"s", each) for each in values]
        records = [(key, value if isinstance(value, bytes) else json.dumps(value).encode()) for key, value in pairs]
        return batch.checked(shipped(name, source=source), batch.records(*records, time=WRITTEN))

    return run


GHENT = {"store_id": "s", "name": "Shop", "city": "Ghent"}
SCHEMA = {
    "type": "struct",
    "fields": [{"field": "placedAt", "type": "int64", "name": "org.apache.kafka.connect.data.Timestamp"}],
}


def test_a_row_in_the_wrapper_of_connect_and_names_of_protobufs_json_are_read(read: Read) -> None:
    wrapped = {"schema": {"type": "struct", "fields": []}, "payload": GHENT}
    mixed = {"storeId": "s", "name": "Shop", "city": "Ghent", "storeid": "x"}

    for line in read("stores-by-key", STORE, [wrapped, {"schema": None, "payload": GHENT}, mixed, GHENT]):
        assert line.problem is None
        assert line.after.asDict() == GHENT


NUMBERS = ("12.50", "1e5", "-0.30000000000000004", "123456789012345678901234567890.10", "12345678901234567.25")
TEXTS = {
    **{number: number for number in (*NUMBERS, "0.12345678901234567891", "-1e400", "1" * 2_000)},
    '{ "a b" : [ 1.50 , "c \\" d" ],\n"e":\tnull }': r'{"a b":[1.50,"c \" d"],"e":null}',
}
"""JSON, and the text that is read of it: numbers have all their digits, an object is its JSON without spaces."""


def test_a_number_and_an_object_are_texts(read: Read) -> None:
    lines = read("stores-by-key", STORE, [f'{{"store_id": "s", "city": {each}}}'.encode() for each in TEXTS])

    assert [(line.after.city, line.problem) for line in lines] == [(text, None) for text in TEXTS.values()]


def test_what_the_schema_of_the_wrapper_says_and_names_within_a_field_are_read(read: Read) -> None:
    items = [{"itemId": "i", "unitPriceCents": 3}, {"item_id": "digits"}]
    text = json.dumps({"schema": SCHEMA, "payload": {"orderId": "o", "placedAt": 1_000, "items": items}})

    [line] = read("orders-by-key", ORDER, [(b"o", text.replace('"digits"', "12345678901234567.25").encode())])

    assert line.problem is None
    assert line.after.placed_at == datetime(1970, 1, 1, 0, 0, 1)  # noqa: DTZ001  as Spark gives UTC
    assert [each.item_id for each in line.after["items"]] == ["i", "12345678901234567.25"]
    assert line.after["items"][0].unit_price_cents == 3


FLAGS: list[tuple[dict[str, object], bool]] = [
    ({"__deleted": "true"}, True),
    ({"__deleted": True}, True),
    ({"__op": "d"}, True),
    ({"__deleted": "false", "__op": "u"}, False),
]


@pytest.mark.parametrize("values", ["protobuf", "state-record"])
def test_json_in_another_table_and_a_registrys_values_are_named(read: Read, values: str) -> None:
    form = b"\0\0\0\0\x07\0\x0a\x01s"

    as_json, registered = read("stores-by-key", {**STORE, "values": values}, [GHENT, form])

    assert as_json.problem.endswith("(the value looks like JSON: then say source.values: json)")
    assert registered.problem.startswith("the value looks like what a schema registry's serializer writes (a 0, then s")


def test_an_object_within_a_row_without_a_field_of_its_message_is_told(read: Read) -> None:
    items = "an element of items has none of the fields of statecast.orders.v1.OrderItem, but others"
    rows = [[{"ItemID": "i"}], [{"item_id": "i"}, {"id": "j"}], [{}], [{"itemId": "i"}], []]

    lines = read("orders-by-key", ORDER, [(b"o", {"order_id": "o", "items": each}) for each in rows])

    assert [line.problem for line in lines] == [items, items, None, None, None]


def test_a_flattened_row_that_says_so_leaves(read: Read) -> None:
    rows = [({**GHENT, **flags}, leaves) for flags, leaves in FLAGS]
    rows += [({"schema": None, "payload": row}, leaves) for row, leaves in rows]

    for line, (_, leaves) in zip(read("stores-by-key", STORE, [row for row, _ in rows]), rows, strict=True):
        assert line.problem is None
        assert (line.change.operation == "OPERATION_DELETE") == leaves
        assert (line.after is None) == (line.payload is None) == leaves


CHANGED = {"before": None, "after": GHENT, "op": "c", "source": {}}
NONE = "the JSON has none of the fields of statecast.sales.v1.Store: "
QUOTED = json.dumps(json.dumps(GHENT))


NO_ROWS: list[tuple[object, str]] = [
    ({}, f"{NONE}it is empty"),
    ({"id": 7, "town": "Ghent"}, f"{NONE}its fields are id, town"),
    (
        {"CITY": "x"},
        f"{NONE}its fields are CITY; the JSON has the field CITY, the message city: give both the same name",
    ),
    ({"__deleted": "false"}, f"{NONE}its fields are __deleted"),
    ({"store_id": "s", "City": "Ghent"}, "the JSON has the field City, the message city: give both the same name"),
    ({"Store ID": "s", "name": "Shop"}, "the JSON has the field Store ID, the message store_id: give both"),
    ({"StoreID": "s", "name": "Shop"}, "the JSON has the field StoreID, the message store_id: give both"),
    (CHANGED, "the value is a change by Debezium (before, after, op): read the topic by format: debezium-json"),
    ({"schema": {}, "payload": CHANGED}, "the value is a change by Debezium (before, after, op)"),
    ({"schema": {}, "payload": None}, "payload is null: only a value that is null deletes a row"),
    ({"schema": {}, "payload": {"id": 7}}, f"{NONE}its fields are id"),
    (
        {"specversion": "1.0", "type": "t", "source": "/", "id": "1", "data": GHENT},
        "the value is an event in an env",
    ),
    ({"store_id": {"$oid": "65f"}}, "store_id is in MongoDB's extended JSON, $oid: write plain values"),
    ([GHENT], "the value is no JSON object but an array: one record must be one row"),
    (QUOTED.encode(), "the value is no JSON object but a text in quotes: is it JSON that was encoded twice?"),
    (b"plain text", "the value is no JSON object"),
    *[
        (text, "the value is no JSON object")
        for text in (b'{"city": "Ghent"} {', b"{'city': 'Ghent'}", b'{"city": "Ghent",}', b'{"city"}')
    ],
    (
        b"\0\0\0\0\x07\x02s",
        "the value looks like what a schema registry's serializer writes (a 0, then schema 7): ",
    ),
    (b'\0\0\0\1\0{"store_id": "s"}', "the value looks like what a schema registry's serializer writes (a 0, then "),
    (gzip.compress(b"{}"), "the value looks like gzip: let Kafka's producer compress (compression.type)"),
]


def test_one_field_of_the_message_makes_a_row_though_it_is_null(read: Read) -> None:
    aggregate = "sales-by-store"

    for line in read(aggregate, INVOICE, [{"storeId": None}, {"store_id": "s", "extra": 1}]):
        assert line.problem is None
        assert line.change is not None


KEYS: list[tuple[bytes, str]] = [
    (
        (200).to_bytes(8, "big"),
        "the record's key is 8 bytes, like the number 200: let the producer write it as text",
    ),
    ((7).to_bytes(8, "big"), "the record's key is 8 bytes, like the number 7: "),
    ((-2).to_bytes(8, "big", signed=True), "the record's key is 8 bytes, like the number -2: "),
    ((7).to_bytes(4, "big"), "the record's key is 4 bytes, like the number 7: "),
    (
        UUID(int=2**128 - 5).bytes,
        "the record's key is 16 bytes, like the UUID ffffffff-ffff-ffff-ffff-fffffffffffb: ",
    ),
    (
        b"\0\0\0\0\x07\x0eorder-1",
        "the record's key is what a schema registry's serializer writes (a 0, then schema 7)",
    ),
    (b'"s"', "the record's key is a JSON text in quotes: let the producer write it as text"),
    (b'{"store_id": "s"}', "the record's key is a JSON object: let the producer write it as text"),
    (b"\xffabc", "the record's key is 4 bytes"),
    (b"\xffabcd", "the record's key is no UTF-8"),
    (b"other", "the record's key is not group_by, store_id: two rows could be one"),
]


def test_what_is_no_row_and_a_key_of_another_form_are_named(read: Read) -> None:
    records = [*NO_ROWS, *(((key, GHENT), problem) for key, problem in KEYS)]
    lines = read("stores-by-key", STORE, [record for record, _ in records])

    for line, (_, problem) in zip(lines, records, strict=True):
        assert line.problem.startswith(problem)
    assert {line.change for line in lines[: len(NO_ROWS)]} == {None}


def test_a_time_that_is_none_is_unknown(shipped: PipelineOf, batch: OneBatch) -> None:
    known, unknown = [0, 253_402_300_799_999_000], [-1_000, 253_402_300_800_000_000, 10**18]
    times = F.array(*map(F.lit, known + unknown))
    rows = batch.records(*[(b"s", json.dumps(GHENT).encode())] * 5)
    timed = rows.withColumn("timestamp", F.timestamp_micros(F.get(times, F.col("offset").cast("int"))))

    decoded = decode(timed, shipped("stores-by-key", source=STORE), batch.functions)
    lines = (
        decoded.selectExpr("problem", "unix_micros(change.source.commit_time) AS micros").orderBy("offset").collect()
    )

    assert [(line.problem, line.micros) for line in lines] == [(None, each) for each in [*known, None, None, None]]
