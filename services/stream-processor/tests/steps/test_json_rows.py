"""JSON of other makers as rows of a table: read where it is unambiguous, else named by its likely form."""

import gzip
import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from uuid import UUID

import pytest
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark program uses

from stream_processor.pipeline.pipeline import Pipeline
from stream_processor.steps.decode import decode
from stream_processor.steps.flow import checked_changes
from stream_processor.steps.functions import Functions

COLUMNS = (
    "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, "
    "headers array<struct<key:string,value:binary>>"
)
WRITTEN = datetime(2024, 8, 28, 12, tzinfo=UTC)
STORE = {"topic": "t", "message": "statecast.sales.v1.Store", "format": "table", "values": "json"}
INVOICE = STORE | {"message": "statecast.sales.v1.Invoice"}
ORDER = STORE | {"message": "statecast.orders.v1.Order"}
Read = Callable[..., list[Row]]

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]


@pytest.fixture
def read(spark: SparkSession, shipped: Callable[..., Pipeline], functions: Functions) -> Read:
    """The checked changes of values, each under the key `s` or (key, value), each object as JSON."""

    def run(name: str, source: dict[str, str], values: Sequence[object], time: datetime = WRITTEN) -> list[Row]:
        pipeline = shipped(name, source=source)
        pairs = [each if isinstance(each, tuple) else (b"s", each) for each in values]
        rows = [
            (key, value if isinstance(value, bytes) else json.dumps(value).encode(), "t", 0, offset, time, None)
            for offset, (key, value) in enumerate(pairs)
        ]
        frame = spark.createDataFrame(rows, COLUMNS)
        return checked_changes(decode(frame, pipeline, functions), pipeline).orderBy("offset").collect()

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


def test_what_the_schema_of_the_wrapper_says_and_names_within_a_field_are_read(read: Read) -> None:
    row = {"orderId": "o", "placedAt": 1_000, "items": [{"itemId": "i", "unitPriceCents": 3}]}

    [line] = read("orders-by-key", ORDER, [(b"o", {"schema": SCHEMA, "payload": row})])

    assert line.problem is None
    assert line.after.placed_at == datetime(1970, 1, 1, 0, 0, 1)  # noqa: DTZ001  as Spark gives UTC
    assert [(each.item_id, each.unit_price_cents) for each in line.after["items"]] == [("i", 3)]


def test_a_number_has_all_its_digits(read: Read) -> None:
    numbers = ["12.50", "1e5", "-0.30000000000000004", "123456789012345678901234567890.10", "12345678901234567.25"]
    numbers += ["0.12345678901234567891", "-1e400", "1" * 2_000]
    values = [f'{{"store_id": "s", "name": "Shop", "city": {each}}}'.encode() for each in numbers]

    lines = read("stores-by-key", STORE, values)

    assert [(line.after.city, line.problem) for line in lines] == [(number, None) for number in numbers]


def test_a_number_within_a_field_has_all_its_digits(read: Read) -> None:
    items = b'{"order_id": "o", "items": [{"item_id": 12345678901234567.25}]}'

    [line] = read("orders-by-key", ORDER, [(b"o", items)])

    assert (line.problem, line.after["items"][0].item_id) == (None, "12345678901234567.25")


def test_an_object_in_a_text_is_its_json_without_spaces(read: Read) -> None:
    value = b'{"store_id": "s", "city": { "a b" : [ 1.50 , "c \\" d" ],\n"e":\tnull } }'

    [line] = read("stores-by-key", STORE, [value])

    assert (line.problem, line.after.city) == (None, r'{"a b":[1.50,"c \" d"],"e":null}')


@pytest.mark.parametrize("value", [b'{"city": "Ghent"} {', b"{'city': 'Ghent'}", b'{"city": "Ghent",}', b'{"city"}'])
def test_a_value_that_only_begins_as_json_is_no_object(read: Read, value: bytes) -> None:
    [line] = read("stores-by-key", STORE, [value])

    assert line.problem == "the value is no JSON object"


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
    (
        b"\0\0\0\0\x07\x02s",
        "the value looks like what a schema registry's serializer writes (a 0, then schema 7): ",
    ),
    (b'\0\0\0\1\0{"store_id": "s"}', "the value looks like what a schema registry's serializer writes (a 0, then "),
    (gzip.compress(b"{}"), "the value looks like gzip: let Kafka's producer compress (compression.type)"),
]


def test_what_is_no_row_is_named(read: Read) -> None:
    for line, (_, problem) in zip(read("stores-by-key", STORE, [each for each, _ in NO_ROWS]), NO_ROWS, strict=True):
        assert line.problem.startswith(problem)
        assert line.change is None


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


def test_a_key_of_another_form_is_named(read: Read) -> None:
    for line, (_, problem) in zip(read("stores-by-key", STORE, [(key, GHENT) for key, _ in KEYS]), KEYS, strict=True):
        assert line.problem.startswith(problem)


def test_a_time_that_is_none_is_unknown(
    spark: SparkSession, shipped: Callable[..., Pipeline], functions: Functions
) -> None:
    known, unknown = [0, 253_402_300_799_999_000], [-1_000, 253_402_300_800_000_000, 10**18]
    value = json.dumps(GHENT).encode()
    rows = spark.createDataFrame([(b"s", value, "t", 0, each, None, None) for each in known + unknown], COLUMNS)
    timed = rows.withColumn("timestamp", F.timestamp_micros("offset"))

    decoded = decode(timed, shipped("stores-by-key", source=STORE), functions)
    lines = decoded.selectExpr("problem", "offset", "unix_micros(change.source.commit_time) AS micros").collect()

    assert {(line.problem, line.offset, line.micros) for line in lines} == {
        (None, each, each if each in known else None) for each in known + unknown
    }
