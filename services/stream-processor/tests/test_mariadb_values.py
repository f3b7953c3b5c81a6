"""Columns of a real MariaDB as fields of the contract, read by a snapshot and from the binlog."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.json_format import ParseDict
from google.protobuf.message import Message
from pyspark.sql import Row, SparkSession

from statecast.descriptors import MessageTypes
from statecast_domains.pipeline_file import PipelineFile
from stream_processor import shapes
from stream_processor.pipeline.fields import Contract
from stream_processor.steps.functions import Functions
from testkit.debezium import mariadb_connector, running_connect
from testkit.mariadb import running_mariadb
from testkit.stream_processor.one_batch import OneBatch
from testkit.topics import create_topic, read_topic
from testkit.waiting import wait_until

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]

TABLE = """
CREATE TABLE readings (
    id int PRIMARY KEY, yes boolean, one bit(1), flags bit(10), big bigint unsigned, price decimal(10, 2), size double,
    day date, clock time(6), local_ms datetime(3), local_us datetime(6), at timestamp(6) NULL, year year,
    state enum('on', 'off'), tags set('a', 'b'), doc json, raw varbinary(9), fixed binary(4), note text)
"""
INSERT = """
INSERT INTO readings VALUES (%s, true, b'1', b'1000000001', 9223372036854775807, 1234.50, 0.25,
    '2024-08-28', '12:34:56.5', '2024-08-28 12:34:56.123', '2024-08-28 12:34:56.123456', '2024-08-28 14:34:56.123456',
    2024, 'off', 'b,a', '{"lines": [1, 2], "text": "ü"}', x'00ff', x'01', '1')
"""
UNKNOWN = "INSERT INTO readings (id) VALUES (3)"
WRONG = (
    "INSERT INTO readings (id, yes) VALUES (4, 2)",
    "INSERT INTO readings (id, big) VALUES (5, 9223372036854775808)",
)

PROTO = """
syntax = "proto3";
package test;
import "google/protobuf/timestamp.proto";
import "statecast/change/v1/change.proto";
enum State { STATE_UNSPECIFIED = 0; STATE_ON = 1; STATE_OFF = 2; }
message Doc { repeated int32 lines = 1; string text = 2; }
message Reading {
  int32 id = 1; bool yes = 2; bool one = 3; bytes flags = 4; uint64 big = 5; string price = 6; double size = 7;
  string day = 8; string clock = 9; google.protobuf.Timestamp local_ms = 10; google.protobuf.Timestamp local_us = 11;
  google.protobuf.Timestamp at = 12; int32 year = 13; State state = 14; string tags = 15; Doc doc = 16; bytes raw = 17;
  bytes fixed = 18; string note = 19;
}
message ReadingChange {
  statecast.change.v1.Operation operation = 1; statecast.change.v1.Source source = 2;
  Reading before = 3; Reading after = 4; google.protobuf.Timestamp captured_at = 5;
}
"""
READING: dict[str, Any] = {
    "yes": True,
    "one": True,
    "flags": "AQI=",
    "big": "9223372036854775807",
    "price": "1234.50",
    "size": 0.25,
    "day": "2024-08-28",
    "clock": "12:34:56.5",
    "localMs": "2024-08-28T12:34:56.123Z",
    "localUs": "2024-08-28T12:34:56.123456Z",
    "at": "2024-08-28T12:34:56.123456Z",
    "year": 2024,
    "state": "STATE_OFF",
    "tags": "a,b",
    "doc": {"lines": [1, 2], "text": "ü"},
    "raw": "AP8=",
    "fixed": "AQAAAA==",
    "note": "1",
}
COUNTS = {"day": "19963", "clock": "45296500000"}
"""The forms of a day and a time as text, without a schema."""


@pytest.fixture(scope="module")
def changes(kafka: str, tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """The connector's records of the rows 1, which was there before it, to 5; then of row 2, changed and deleted."""
    create_topic(kafka, "values-readings", partitions=1)
    modes = {"decimal_handling_mode": "string", "value_converter": "org.apache.kafka.connect.json.JsonConverter"}
    modes["value_converter_schemas_enable"] = "true"
    with running_mariadb(tmp_path_factory.mktemp("mariadb"), default_time_zone="+02:00") as database:
        database.execute(TABLE)
        database.execute(INSERT, [1])
        connector = mariadb_connector(database.server, kafka, ["readings"], topics="values-$1", **modes)
        with running_connect(tmp_path_factory.mktemp("connect"), kafka, connector):
            wait_until(lambda: read_topic(kafka, "values-readings"), "no snapshot arrives")
            database.execute(INSERT, [2])
            for statement in (UNKNOWN, *WRONG):
                database.execute(statement)
            database.execute("UPDATE readings SET note = '2' WHERE id = 2")
            database.execute("DELETE FROM readings WHERE id = 2")
            wait_until(lambda: len(read_topic(kafka, "values-readings")) >= 8, "not all changes arrive")
        values = [json.loads(record.value) for record in read_topic(kafka, "values-readings") if record.value]
    assert [value["payload"]["op"] for value in values] == ["r", "c", "c", "c", "c", "u", "d"]
    return values


@pytest.fixture
def messages(tmp_path: Path) -> MessageTypes:
    (tmp_path / "readings.proto").write_text(PROTO)
    return MessageTypes.read(tmp_path)


@pytest.fixture
def decoded(
    messages: MessageTypes, spark: SparkSession, changes: list[dict[str, Any]]
) -> Callable[[Callable[[dict[str, Any]], dict[str, Any]]], list[Row]]:
    """Decodes the connector's records, in another form."""
    contract = Contract(messages.descriptor_set)
    source = {"topic": "readings", "message": "test.ReadingChange", "format": "debezium-json"}
    content = {"name": "readings", "source": source, "group_by": "id", "keep": "latest", "sink": {"topic": "sink"}}
    pipeline = shapes.check("readings.yaml", PipelineFile.model_validate(content), contract)

    def read(form: Callable[[dict[str, Any]], dict[str, Any]]) -> list[Row]:
        values = [json.dumps(form(each)).encode() for each in changes]
        return OneBatch(spark, Functions(spark, contract)).decoded(pipeline, *values)

    return read


@pytest.mark.parametrize(
    ("form", "texts"),
    [(lambda change: change, {}), (lambda change: change["payload"], COUNTS)],
    ids=["with a schema", "without a schema"],
)
def test_each_column_has_its_value_however_it_was_read(
    decoded: Callable[..., list[Row]], messages: MessageTypes, form: Callable[..., Any], texts: dict[str, str]
) -> None:
    def reading(number: int, **replaced: object) -> Message:
        return ParseDict({"id": number, **READING, **texts, **replaced}, messages.message_class("test.Reading")())

    snapshot, created, unknown, truth, unsigned, updated, deleted = decoded(form)

    read = messages.message_class("test.Reading").FromString
    assert (snapshot.problem, read(bytes(snapshot.payload))) == (None, reading(1))
    assert (created.problem, read(bytes(created.payload))) == (None, reading(2))
    assert (updated.problem, read(bytes(updated.payload))) == (None, reading(2, note="2"))
    assert updated.change.before == created.change.after
    assert deleted.change.before == updated.change.after
    assert {name for name, value in unknown.change.after.asDict().items() if value is not None} == {"id"}
    assert truth.problem == "after.yes is not true or false, or 1 or 0: 2"
    assert unsigned.problem == "after.big is not a whole number of type uint64: -9223372036854775808"
