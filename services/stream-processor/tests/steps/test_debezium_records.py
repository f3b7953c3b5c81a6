"""Records that real connectors of Debezium 3.7 have written of a PostgreSQL 17, with several settings; in debezium/.

`default` and `schema` differ by schemas.enable; `nanos` and `nanos_bare`, with and without a schema, have
time.precision.mode=nanoseconds, decimal.handling.mode=string, hstore.handling.mode=map and include.unknown.datatypes;
`micros` has binary.handling.mode=base64, `isostring` and `isoschema` time.precision.mode=isostring. The schema of the
types' records stands in the file once, and a column of 2,000 zeros is left out.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.json_format import ParseDict
from google.protobuf.message import Message
from pyspark.sql import DataFrame, Row, SparkSession

from statecast.descriptors import MessageTypes
from statecast_domains.pipeline_file import PipelineFile
from stream_processor import shapes
from stream_processor.pipeline.fields import Contract
from stream_processor.pipeline.pipeline import Pipeline
from stream_processor.steps.decode import decode
from stream_processor.steps.flow import written_records
from stream_processor.steps.functions import Functions
from stream_processor.steps.json_texts import NOT_IN_THE_LOG

pytestmark = pytest.mark.spark

SAMPLES = Path(__file__).parent / "debezium"
DOUBT = (
    "a moment between the years 1 and 9999 without a doubt (only the schema says the unit of a count; "
    "set schemas.enable=true at the connector's value converter)"
)
MOMENT = "a moment between the years 1 and 9999"
LARGE = {
    "string": ["txt", "vc", "bpc", "cit", "js", "jsb", "xm", "hs", "num", "tsv", "lt"],
    "bytes": ["byt", "nrng", "pr"],
    "repeated int32": ["ints"],
    "repeated int64": ["bigints"],
    "repeated string": ["texts", "vcs", "chars", "uuids", "jsons", "jsbs"],
    "repeated google.protobuf.Timestamp": ["dates"],
    "repeated bytes": ["bytes_"],
}
"""The columns of the table `large` that do not come as NULL, by the type of their field."""
RIM = {
    "int32": ["id"],
    "string": ["note", "t", "iv", "mny", "hs", "chr", "cit", "lt", "r4", "rts", "xm", "ip", "u", "js", "pt", "md"],
    "google.protobuf.Timestamp": ["d", "ts", "ts0", "ts3", "tstz"],
    "float": ["f4"],
    "double": ["f8"],
    "bytes": ["b8", "byt", "pr"],
    "bool": ["b1", "bo"],
    "repeated string": ["mds", "nm"],
    "repeated google.protobuf.Timestamp": ["tss"],
    "repeated double": ["f8s"],
}
DECIMALS = "string num = 98; string num122 = 99 [(statecast.change.v1.decimal) = {precision: 12, scale: 2}];"
ENVELOPE = """
message {0}Change {{
  statecast.change.v1.Operation operation = 1; statecast.change.v1.Source source = 2;
  {0} before = 3; {0} after = 4; google.protobuf.Timestamp captured_at = 5;
}}
"""


def message(name: str, types: dict[str, list[str]], more: str = "") -> str:
    fields = [f"{of_type} {column}" for of_type, columns in types.items() for column in columns]
    numbered = "".join(f"{field} = {number + 1}; " for number, field in enumerate(fields))
    return f"message {name} {{ {numbered}{more} }}{ENVELOPE.format(name)}"


PROTO = f"""
syntax = "proto3";
package test;
import "google/protobuf/timestamp.proto";
import "statecast/change/v1/change.proto";
import "statecast/change/v1/decimal.proto";
{message("Large", {"int32": ["id", "n"], **LARGE})}
{message("Texts", {"string": ["id", *[column for columns in LARGE.values() for column in columns]]})}
{message("Rim", RIM, DECIMALS)}
"""


@pytest.fixture(scope="module")
def types(tmp_path_factory: pytest.TempPathFactory) -> MessageTypes:
    directory = tmp_path_factory.mktemp("messages")
    (directory / "rim.proto").write_text(PROTO)
    return MessageTypes.read(directory)


@pytest.fixture(scope="module")
def known(types: MessageTypes) -> Contract:
    return Contract(types.descriptor_set)


@pytest.fixture
def pipeline_of(known: Contract) -> Callable[[str], Pipeline]:
    """A pipeline of the change message with a name."""

    def checked(name: str) -> Pipeline:
        source = {"topic": "rows", "message": f"test.{name}Change", "format": "debezium-json"}
        content = {"name": "rows", "source": source, "group_by": "id", "keep": "latest", "sink": {"topic": "sink"}}
        return shapes.check("rows.yaml", PipelineFile.model_validate(content), known)

    return checked


@pytest.fixture
def read(
    spark: SparkSession,
    records: Callable[..., DataFrame],
    known: Contract,
    pipeline_of: Callable[[str], Pipeline],
) -> Callable[..., list[Row]]:
    """Decodes values as changes of a message."""

    def decoded(name: str, values: list[dict[str, Any]]) -> list[Row]:
        raw = [json.dumps(value).encode() for value in values]
        return decode(records(*raw), pipeline_of(name), Functions(spark, known)).orderBy("offset").collect()

    return decoded


def samples(name: str) -> dict[str, list[dict[str, Any]]]:
    content: dict[str, list[dict[str, Any]]] = json.loads((SAMPLES / f"{name}.json").read_text())
    return content


def of_types(settings: str) -> dict[int, dict[str, Any]]:
    """The records of the table of types, by their row's id."""
    saved = samples("rim-of-types")
    [schema] = saved.get(f"{settings}-schema", [{}])
    rows = {change["after"]["id"]: change for change in saved[settings]}
    return {number: {"schema": schema, "payload": row} if schema else row for number, row in rows.items()}


@pytest.mark.parametrize("name", ["Large", "Texts"])
def test_an_unchanged_large_value_is_a_dead_letter_in_every_form(read: Callable[..., list[Row]], name: str) -> None:
    changes = []
    for saved in samples("unchanged-large").values():
        [change] = saved
        payload = change.get("payload", change)
        for column in {column for columns in LARGE.values() for column in columns}:
            if payload["after"].get(column) is not None:
                alone = {**payload, "after": {"id": 1, column: payload["after"][column]}}
                changes.append((column, {**change, "payload": alone} if "schema" in change else alone))

    lines = read(name, [change for _, change in changes])

    assert [line.problem for line in lines] == [f"after.{column}{NOT_IN_THE_LOG}" for column, _ in changes]


def test_a_value_that_is_almost_the_placeholder_is_itself(read: Callable[..., list[Row]]) -> None:
    [change] = samples("unchanged-large")["default"]
    values: list[dict[str, Any]] = [
        {"txt": "__debezium_unavailable_value "},
        {"texts": ["__debezium_unavailable_value", "b"]},
    ]
    values += [
        {"ints": [95, 95]},
        {"ints": [*b"__debezium_unavailable_value", 1]},
        {"js": '{"a":"__debezium_unavailable_value"}'},
    ]

    lines = read("Large", [{**change, "after": {"id": 1, **value}} for value in values])

    assert [line.problem for line in lines] == [None] * len(values)
    assert [line.change.after["ints"] for line in lines[2:4]] == [value["ints"] for value in values[2:4]]


@pytest.mark.parametrize("form", ["heartbeat", "transaction", "notification", "message", "signals"])
def test_a_record_that_is_no_row_is_passed_over(
    records: Callable[..., DataFrame],
    spark: SparkSession,
    known: Contract,
    pipeline_of: Callable[[str], Pipeline],
    form: str,
) -> None:
    saved = samples("no-rows")[form]
    rows = [
        (*[bytearray(json.dumps(each[part]).encode()) for part in ("key", "value")], "rows", 0, 7) for each in saved
    ]
    read = spark.createDataFrame(rows, "key binary, value binary, topic string, partition int, offset bigint")
    pipeline, functions = pipeline_of("Rim"), Functions(spark, known)

    lines = decode(read, pipeline, functions).collect()
    whole = read.selectExpr(
        "*", "cast(null as timestamp) timestamp", "cast(null as array<struct<key:string,value:binary>>) headers"
    )
    written = written_records([whole], pipeline, 4, 1, functions)

    assert all(line.passed_over and (line.change, line.problem) == (None, None) for line in lines)
    assert written.collect() == []


def test_the_key_of_a_record_without_a_row_may_be_text(
    spark: SparkSession, known: Contract, pipeline_of: Callable[[str], Pipeline]
) -> None:
    keys = {"heartbeat": b"Struct{serverName=p_default}", "transaction": b"Struct{id=764:29408728}"}
    values = {form: json.dumps(samples("no-rows")[form][0]["value"]).encode() for form in keys}
    rows = [(bytearray(key), bytearray(values[form]), "rows", 0, 7) for form, key in keys.items()]
    read = spark.createDataFrame(rows, "key binary, value binary, topic string, partition int, offset bigint")

    lines = decode(read, pipeline_of("Rim"), Functions(spark, known)).collect()

    assert [line.problem for line in lines] == [None, None]
    assert [line.passed_over[:5] for line in lines] == ["a hea", "the m"]


def test_a_change_of_a_tables_definition_is_passed_over(read: Callable[..., list[Row]]) -> None:
    # As the MariaDB connector writes it with include.schema.changes.
    change = {
        "source": {"connector": "mariadb", "file": "binlog.000001", "pos": 4},
        "ts_ms": 1,
        "databaseName": "shop",
        "schemaName": None,
        "ddl": "DROP TABLE a",
        "tableChanges": [],
    }

    [line] = read("Rim", [change])

    assert line.passed_over == "a change of a table's definition"


def test_what_only_resembles_a_record_without_a_row_is_a_dead_letter(read: Callable[..., list[Row]]) -> None:
    lines = read("Rim", [{"ts_ms": 1}, {"ts_ms": 1, "x": 2}, {"status": "BEGIN", "id": "a"}, {"City": "a", "Id": 1}])

    assert [line.problem for line in lines[:2]] == [
        "op is not set: this is no change by Debezium, the record has ts_ms",
        "op is not set: this is no change by Debezium, the record has ts_ms, x",
    ]
    assert "ExtractNewRecordState" in lines[2].problem
    assert lines[3].problem == "op is not set: this is no change by Debezium, the record has City, Id"


FULL = {
    "id": 1,
    "note": "full",
    "hs": '{"a":"1","b":null}',
    "chr": "x",
    "cit": "CaSe",
    "lt": "a.b",
    "r4": "[1,5)",
    "rts": '["2024-01-01 00:00:00+00",infinity)',
    "xm": "<a>1</a>",
    "ip": "10.0.0.1/8",
    "u": "2c6a1b0e-5f7b-4a0e-9d0c-1f2e3d4c5b6a",
    "js": '{"b": 1.10,  "a":1e400}',
    "pt": '{"x":1.0,"y":2.0,"wkb":"AQEAAAAAAAAAAADwPwAAAAAAAABA","srid":null}',
    "md": "ok",
    "d": "2024-08-28T00:00:00Z",
    "ts": "2024-08-28T12:34:56.123456Z",
    "ts0": "2024-08-28T12:34:56Z",
    "ts3": "2024-08-28T12:34:56.123Z",
    "tstz": "2024-08-28T12:34:56.123456Z",
    "f4": 1.5,
    "f8": 0.1,
    "b8": "gQ==",
    "byt": "AP8=",
    "b1": True,
    "bo": True,
    "mds": ["sad", "ok"],
    "nm": ["a", "b"],
    "tss": ["2024-08-28T12:34:56.123456Z"],
    "f8s": [0.1],
    "num": "1234.5678",
}
OF_SETTINGS: dict[str, dict[str, Any]] = {
    "schema": {"t": "12:34:56.123456", "mny": "12.34", "num122": "1234.50", "iv": None},
    "nanos": {"t": "12:34:56.123456", "mny": "12.34", "num122": "1234.50", "iv": "P0Y1M2DT3H4M5.6S", "pr": "KDEseCk="},
    "nanos_bare": {
        "t": "45296123456000",
        "mny": "12.34",
        "num122": "1234.50",
        "iv": "P0Y1M2DT3H4M5.6S",
        "pr": "KDEseCk=",
    },
    "isoschema": {"t": "12:34:56.123456Z", "mny": "12.34", "num122": "1234.50", "iv": None, "pr": "KDEseCk="},
}


@pytest.mark.parametrize("settings", OF_SETTINGS)
def test_each_type_of_column_has_its_value(read: Callable[..., list[Row]], types: MessageTypes, settings: str) -> None:
    of_settings = OF_SETTINGS[settings]
    change = of_types(settings)[1]
    row = change.get("payload", change)["after"]
    if of_settings["iv"] is None:  # counted in microseconds its months are lost
        row["iv"] = None
    wanted: Message = types.message_class("test.Rim")()
    ParseDict({**FULL, **{name: value for name, value in of_settings.items() if value is not None}}, wanted)
    if settings != "nanos":
        row["hs"] = FULL["hs"]
    if settings == "nanos":
        row["hs"] = json.dumps(row["hs"], separators=(",", ":"))

    [line] = read("Rim", [change])

    assert line.problem is None
    assert types.message_class("test.Rim").FromString(bytes(line.payload)) == wanted


@pytest.mark.parametrize("settings", ["schema", "nanos", "nanos_bare", "default", "isoschema"])
def test_an_infinite_moment_is_a_dead_letter(read: Callable[..., list[Row]], settings: str) -> None:
    changes = []
    for number in (3, 4):
        change = of_types(settings)[number]
        payload = change.get("payload", change)
        for column in ("d", "ts", "ts0", "ts3", "tstz"):
            alone = {**payload, "after": {"id": number, column: payload["after"][column]}}
            changes.append((column, {**change, "payload": alone} if "schema" in change else alone))

    lines = read("Rim", [change for _, change in changes])

    for line, (column, change) in zip(lines, changes, strict=True):
        text = change.get("payload", change)["after"][column]
        wanted = DOUBT if settings in ("nanos_bare", "default") and column != "tstz" else MOMENT
        assert line.problem == f"after.{column} is not {wanted}: {text}"


def test_the_last_day_of_the_year_9999_is_itself_or_refused(read: Callable[..., list[Row]]) -> None:
    [sound] = read("Rim", [of_types("schema")[8]])
    [doubtful] = read("Rim", [of_types("default")[8]])

    assert sound.problem is None
    assert (sound.change.after.d.year, sound.change.after.ts.year, sound.change.after.ts3.year) == (9999, 9999, 9999)
    assert doubtful.problem == f"after.ts is not {DOUBT}: 253402300799999999"


def test_what_is_no_number_is_one_of_a_double_and_refused_by_a_decimal(read: Callable[..., list[Row]]) -> None:
    nan, infinite = (of_types("nanos")[number] for number in (9, 10))
    numeric = {**infinite["payload"], "after": {"id": 9, "f8": infinite["payload"]["after"]["num"]}}

    lines = read("Rim", [nan, infinite, {**infinite, "payload": numeric}])

    assert [line.problem for line in lines] == ["after.num122 is not a decimal(12,2): NAN", None, None]
    assert [(line.change.after.f8) for line in lines[1:]] == [float("inf")] * 2


def test_arrays_of_infinite_moments_and_of_what_is_no_number(read: Callable[..., list[Row]]) -> None:
    change = of_types("nanos")[15]
    row = change["payload"]["after"]

    moments, numbers = read(
        "Rim",
        [{**change, "payload": {**change["payload"], "after": {"id": 1, name: row[name]}}} for name in ("tss", "f8s")],
    )

    assert moments.problem == f"after.tss is not {MOMENT}: 9223372036854775807"
    assert str(numbers.change.after.f8s) == "[nan, inf]"
