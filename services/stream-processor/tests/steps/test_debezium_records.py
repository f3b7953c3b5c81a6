"""Records that real connectors of Debezium 3.7 have written of a PostgreSQL 17, with several settings; in debezium/.

`default` and `schema` differ by schemas.enable; `nanos` and `nanos_bare`, with and without a schema, have
time.precision.mode=nanoseconds, decimal.handling.mode=string, hstore.handling.mode=map and include.unknown.datatypes;
`micros` has binary.handling.mode=base64, `isostring` and `isoschema` time.precision.mode=isostring. The schema of the
types' records stands in the file once, and a column of 2,000 zeros is left out.
"""

import json
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
from stream_processor.pipeline.pipeline import Pipeline
from stream_processor.steps.functions import Functions
from stream_processor.steps.json_texts import NOT_IN_THE_LOG
from testkit.stream_processor.one_batch import OneBatch

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
def batch(spark: SparkSession, types: MessageTypes) -> OneBatch:
    return OneBatch(spark, Functions(spark, Contract(types.descriptor_set)))


def pipeline_of(name: str, types: MessageTypes) -> Pipeline:
    """Returns a pipeline of the change message with a name."""
    source = {"topic": "rows", "message": f"test.{name}Change", "format": "debezium-json"}
    content = {"name": "rows", "source": source, "group_by": "id", "keep": "latest", "sink": {"topic": "sink"}}
    return shapes.check("rows.yaml", PipelineFile.model_validate(content), Contract(types.descriptor_set))


def samples(name: str) -> dict[str, list[dict[str, Any]]]:
    content: dict[str, list[dict[str, Any]]] = json.loads((SAMPLES / f"{name}.json").read_text())
    return content


def of_types(settings: str) -> dict[int, dict[str, Any]]:
    """Returns the records of the table of types, by their row's id."""
    saved = samples("rim-of-types")
    [schema] = saved.get(f"{settings}-schema", [{}])
    rows = {change["after"]["id"]: change for change in saved[settings]}
    return {number: {"schema": schema, "payload": row} if schema else row for number, row in rows.items()}


def with_row(change: dict[str, Any], row: dict[str, Any]) -> dict[str, Any]:
    """Returns the change with another row."""
    payload = {**change.get("payload", change), "after": row}
    return {**change, "payload": payload} if "schema" in change else payload


ALMOST: list[dict[str, Any]] = [
    {"txt": "__debezium_unavailable_value "},
    {"texts": ["__debezium_unavailable_value", "b"]},
    {"ints": [95, 95]},
    {"ints": [*b"__debezium_unavailable_value", 1]},
    {"js": '{"a":"__debezium_unavailable_value"}'},
]
"""Values that are almost the placeholder of one that the log does not have."""


@pytest.mark.parametrize("name", ["Large", "Texts"])
def test_an_unchanged_large_value_is_a_dead_letter_in_every_form_and_one_that_is_almost_the_same_is_itself(
    batch: OneBatch, types: MessageTypes, name: str
) -> None:
    changes = []
    for [change] in samples("unchanged-large").values():
        row = change.get("payload", change)["after"]
        changes += [
            (with_row(change, {"id": 1, column: row[column]}), f"after.{column}{NOT_IN_THE_LOG}")
            for columns in LARGE.values()
            for column in columns
            if row.get(column) is not None
        ]
    [plain] = samples("unchanged-large")["default"]
    almost = [with_row(plain, {"id": 1, **value}) for value in ALMOST] if name == "Large" else []

    records = [json.dumps(each).encode() for each in [*(change for change, _ in changes), *almost]]
    lines = batch.decoded(pipeline_of(name, types), *records)

    assert [line.problem for line in lines] == [*(problem for _, problem in changes), *[None] * len(almost)]
    ints = [line.change.after["ints"] for line in lines[len(changes) :]]
    assert ints == [value.get("ints", []) for value in ALMOST[: len(almost)]]


DEFINITION = {
    "source": {"connector": "mariadb", "file": "binlog.000001", "pos": 4},
    "ts_ms": 1,
    "databaseName": "shop",
    "schemaName": None,
    "ddl": "DROP TABLE a",
    "tableChanges": [],
}
"""As the MariaDB connector writes a change of a definition, with include.schema.changes."""


def test_records_that_are_no_rows_are_passed_over(batch: OneBatch, types: MessageTypes) -> None:
    forms = samples("no-rows")
    saved = [(each["key"], each["value"]) for records in forms.values() for each in records]
    records = [(json.dumps(key).encode(), json.dumps(value).encode()) for key, value in [*saved, (None, DEFINITION)]]
    # The key of a record may be text.
    for form, key in {"heartbeat": b"Struct{serverName=p_default}", "transaction": b"Struct{id=764:29408728}"}.items():
        records.append((key, json.dumps(forms[form][0]["value"]).encode()))

    lines = batch.decoded(pipeline_of("Rim", types), *records)

    assert all(line.passed_over and (line.change, line.problem) == (None, None) for line in lines)
    assert [line.passed_over for line in lines[-3:]] == [
        "a change of a table's definition",
        "a heartbeat of the connector",
        "the mark of a transaction's begin or end",
    ]
    assert batch.lines(pipeline_of("Rim", types), *records).collect() == []


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


INFINITE = [
    (settings, number, column)
    for settings in ("schema", "nanos", "nanos_bare", "default", "isoschema")
    for number in (3, 4)
    for column in ("d", "ts", "ts0", "ts3", "tstz")
]
"""The settings, the id and the column of moments without an end."""


def whole_row(settings: str) -> dict[str, Any]:
    """Returns a row with a value in each column, but for months, which are lost when counted in microseconds."""
    change = of_types(settings)[1]
    row = change.get("payload", change)["after"]
    hstore = json.dumps(row["hs"], separators=(",", ":")) if settings == "nanos" else FULL["hs"]
    return with_row(change, {**row, "hs": hstore, **({"iv": None} if OF_SETTINGS[settings]["iv"] is None else {})})


def infinite(settings: str, number: int, column: str) -> dict[str, Any]:
    change = of_types(settings)[number]
    return with_row(change, {"id": number, column: change.get("payload", change)["after"][column]})


def records() -> dict[Any, dict[str, Any]]:
    """Changes of the table of types, and records that only resemble those without a row."""
    nanos = of_types("nanos")
    arrays = nanos[15]["payload"]["after"]
    return {
        **{settings: whole_row(settings) for settings in OF_SETTINGS},
        **{each: infinite(*each) for each in INFINITE},
        "the last day": of_types("schema")[8],
        "the last day in doubt": of_types("default")[8],
        "no number": nanos[9],
        "an infinite number": nanos[10],
        "an infinite numeric": with_row(nanos[10], {"id": 9, "f8": nanos[10]["payload"]["after"]["num"]}),
        "infinite moments": with_row(nanos[15], {"id": 1, "tss": arrays["tss"]}),
        "infinite numbers": with_row(nanos[15], {"id": 1, "f8s": arrays["f8s"]}),
        "a time": {"ts_ms": 1},
        "a time and more": {"ts_ms": 1, "x": 2},
        "a status": {"status": "BEGIN", "id": "a"},
        "a row": {"City": "a", "Id": 1},
    }


@pytest.fixture(scope="module")
def lines(batch: OneBatch, types: MessageTypes) -> dict[Any, Row]:
    """The records, decoded."""
    decoded = batch.decoded(pipeline_of("Rim", types), *[json.dumps(each).encode() for each in records().values()])
    return dict(zip(records(), decoded, strict=True))


@pytest.mark.parametrize("settings", OF_SETTINGS)
def test_each_type_of_column_has_its_value(lines: dict[Any, Row], types: MessageTypes, settings: str) -> None:
    known = {name: value for name, value in OF_SETTINGS[settings].items() if value is not None}
    wanted: Message = ParseDict({**FULL, **known}, types.message_class("test.Rim")())

    assert lines[settings].problem is None
    assert types.message_class("test.Rim").FromString(bytes(lines[settings].payload)) == wanted


def test_an_infinite_moment_is_a_dead_letter(lines: dict[Any, Row]) -> None:
    for settings, number, column in INFINITE:
        change = of_types(settings)[number]
        moment = DOUBT if settings in ("nanos_bare", "default") and column != "tstz" else MOMENT
        text = change.get("payload", change)["after"][column]

        assert lines[settings, number, column].problem == f"after.{column} is not {moment}: {text}"
    assert lines["infinite moments"].problem == f"after.tss is not {MOMENT}: 9223372036854775807"


def test_the_last_day_of_the_year_9999_is_itself_or_refused(lines: dict[Any, Row]) -> None:
    row = lines["the last day"].change.after

    assert (row.d.year, row.ts.year, row.ts3.year) == (9999, 9999, 9999)
    assert lines["the last day in doubt"].problem == f"after.ts is not {DOUBT}: 253402300799999999"


def test_what_is_no_number_is_one_of_a_double_and_refused_by_a_decimal(lines: dict[Any, Row]) -> None:
    assert lines["no number"].problem == "after.num122 is not a decimal(12,2): NAN"
    assert lines["an infinite number"].change.after.f8 == lines["an infinite numeric"].change.after.f8 == float("inf")
    assert str(lines["infinite numbers"].change.after.f8s) == "[nan, inf]"


def test_what_only_resembles_a_record_without_a_row_is_a_dead_letter(lines: dict[Any, Row]) -> None:
    assert [lines[each].problem for each in ("a time", "a time and more", "a row")] == [
        f"op is not set: this is no change by Debezium, the record has {names}"
        for names in ("ts_ms", "ts_ms, x", "City, Id")
    ]
    assert "ExtractNewRecordState" in lines["a status"].problem
