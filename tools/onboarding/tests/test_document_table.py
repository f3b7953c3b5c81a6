"""A row in JSON, and schemas of Kafka Connect and Avro, give messages that the services' own checks take."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from statecast_client.__main__ import main as statecast

ROW = {"id": "p-1", "size": 3, "price": 1.5, "open": True, "at": "2026-11-23T00:00:00Z", "lines": [{"n": 1}], "x": None}
CONNECT_ROW = {
    "type": "struct",
    "field": "after",
    "fields": [
        {"field": "id", "type": "string"},
        {"field": "size", "type": "int32", "optional": True},
        {"field": "at", "type": "int64", "name": "io.debezium.time.MicroTimestamp"},
        {"field": "price", "type": "bytes", "name": "org.apache.kafka.connect.data.Decimal", "optional": True},
        {"field": "state", "type": "string", "name": "io.debezium.data.Enum", "parameters": {"allowed": "open,shut"}},
        {"field": "sizes", "type": "array", "items": {"type": "int32"}},
    ],
}
AVRO_ROW = {
    "type": "record",
    "name": "Value",
    "fields": [
        {"name": "id", "type": "string"},
        {"name": "size", "type": ["null", "int"]},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "state", "type": {"type": "enum", "name": "State", "symbols": ["OPEN", "SHUT"]}},
        {"name": "sizes", "type": {"type": "array", "items": "long"}},
        {"name": "texts", "type": {"type": "map", "values": "string"}},
    ],
}
AVRO_ENVELOPE = {
    "type": "record",
    "name": "Envelope",
    "fields": [
        {"name": "before", "type": ["null", AVRO_ROW]},
        {"name": "after", "type": ["null", "Value"]},
        {"name": "op", "type": "string"},
        {"name": "source", "type": "string"},
    ],
}


@pytest.mark.parametrize(
    ("option", "document", "fields"),
    [
        ("--sample", ROW, ["string id", "int64 size", "double price", "bool open", "repeated Lines lines", "string x"]),
        (
            "--sample",
            {"before": None, "after": ROW, "op": "c"},
            ["optional int64 size", "google.protobuf.Timestamp at"],
        ),
        ("--sample", {"schema": {"type": "struct", "fields": [CONNECT_ROW]}, "payload": {}}, ["optional string price"]),
        ("--sample", CONNECT_ROW, ["string id", "optional int32 size", "State state", "repeated int32 sizes"]),
        ("--avro", AVRO_ROW, ["optional int32 size", "google.protobuf.Timestamp at", "State state"]),
        ("--avro", AVRO_ENVELOPE, ["optional int32 size", "repeated int64 sizes"]),
    ],
)
def test_a_document_passes_all_checks(
    out: Path, tmp_path: Path, check: Callable[[], int], option: str, document: object, fields: list[str]
) -> None:
    file = tmp_path / "document.json"
    file.write_text(json.dumps(document))
    command = ["import", option, str(file), "--topic", "shop.parcels", "--key", "id", "--out", str(out)]

    assert statecast([*command, "--shape", "latest", "--shape", "members", "--group", "id", "--sort", "at"]) == 0
    assert check() == 0
    proto = (out / "messages/parcels.proto").read_text()
    assert all(f" {field} = " in proto for field in fields)
    assert "package shop.v1;" in proto


def imported(tmp_path: Path, out: Path, option: str, document: object, *more: str) -> str:
    """Returns the message that is written for a document."""
    (tmp_path / "document.json").write_text(json.dumps(document))
    command = ["import", option, str(tmp_path / "document.json"), "--topic", "shop.rows", "--key", "id", *more]

    assert statecast([*command, "--out", str(out)]) == 0
    return (out / "messages/rows.proto").read_text()


@pytest.mark.parametrize(
    ("row", "fields"),
    [
        ({"Name": 2, "Address": {"City": "Rome"}}, ["int64 Name", "AddressValue Address", "string City"]),
        ({"meta": {}}, ["// JSON. Unset for NULL.\n  optional string meta"]),
        ({"list": [{"a": {}}]}, ["// JSON. Unset for NULL.\n    optional string a", "repeated List list"]),
        ({"a": {"first-name": 1}}, ["string a"]),
        ({"a": {"b": {"_c": 1}, "d": 2}}, ["A a", "string b", "int64 d"]),
        ({"user_id": 1, "userId": 2}, ["int64 user_id", "// Left out: userId: it differs from user_id"]),
        ({"line_items": [{"n": 1}], "lineItems": 2}, ["repeated LineItems line_items", "// Left out: lineItems: "]),
        ({"state_": {"a": 1}, "state": {"b": 1}}, ["State state_", "// Left out: state: "]),
        ({"a": "2024-01-01 10:00 meeting", "b": "2024-01-01 10:00:00.5"}, ["string a", "Timestamp b"]),
        ({"numbers": [1, 2.5]}, ["repeated double numbers"]),
        ({"texts": ["a", "2024-01-01T10:00:00Z"]}, ["repeated string texts"]),
        ({"mixed": [1, "a"]}, ["// JSON.\n  string mixed"]),
        ({"nested": [[1], [2]]}, ["// JSON.\n  string nested"]),
        ({"nulls": [1, None]}, ["// JSON.\n  string nulls"]),
        ({"of": [{"a": 1}, {"a": 2.5, "b": True}, {"a": None}]}, ["double a", "bool b", "repeated Of of"]),
        ({"payload": "{}"}, ["string payload"]),
        ({"payload": {"a": 1}}, ["Payload payload"]),
        ({"schema": "public", "type": "struct"}, ["string schema", "string type"]),
        ({"before": {"a": 1}}, ["Before before"]),
    ],
)
def test_a_sample_gives_fields_that_take_its_values(
    out: Path, tmp_path: Path, check: Callable[[], int], row: dict[str, object], fields: list[str]
) -> None:
    proto = imported(tmp_path, out, "--sample", {"id": 1, **row})

    assert all(field in proto for field in fields), proto
    assert check() == 0


def digits(scale: str, precision: str = "") -> dict[str, object]:
    """Returns the parameters of a decimal in Kafka Connect's schema."""
    parameters = {"scale": scale, "connect.decimal.precision": precision}
    return {"parameters": {name: value for name, value in parameters.items() if value}}


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        (
            {"type": "struct", "name": "io.debezium.data.VariableScaleDecimal", "fields": []},
            "// Digits, exactly; to SQL a text, because the schema does not say how many.\n  string a = 2;",
        ),
        (
            {"type": "bytes", "name": "org.apache.kafka.connect.data.Decimal"} | digits("2", "12"),
            "string a = 2 [(statecast.change.v1.decimal) = {precision: 12, scale: 2}];",
        ),
        (
            {"type": "bytes", "name": "org.apache.kafka.connect.data.Decimal"} | digits("2"),
            "string a = 2 [(statecast.change.v1.decimal) = {precision: 38, scale: 2}];",
        ),
        (
            {
                "type": "array",
                "items": {"type": "bytes", "name": "org.apache.kafka.connect.data.Decimal", **digits("2", "12")},
            },
            "repeated string a = 2 [(statecast.change.v1.decimal) = {precision: 12, scale: 2}];",
        ),
        (
            {"type": "int64", "name": "io.debezium.time.MicroTime"},
            "// A time of day, for example `10:00:00`.\n",
        ),
        ({"type": "int64", "name": "io.debezium.time.MicroDuration"}, "// An ISO 8601 duration, for example"),
        ({"type": "string", "name": "io.debezium.time.Interval"}, "// An ISO 8601 duration, for example"),
        (
            {
                "type": "array",
                "items": {"type": "string", "name": "io.debezium.data.Enum", "parameters": {"allowed": "x,y"}},
            },
            "repeated A a",
        ),
        ({"type": "array", "items": {"type": "array", "items": {"type": "int32"}}}, "// JSON.\n  string a"),
        ({"type": "map", "keys": {"type": "string"}, "values": {"type": "string"}}, "// JSON.\n  string a"),
    ],
)
def test_a_schema_of_connect_gives_fields_that_take_its_values(
    out: Path, tmp_path: Path, check: Callable[[], int], field: dict[str, object], expected: str
) -> None:
    fields = [{"field": "id", "type": "string"}, {"field": "a", **field}]
    proto = imported(tmp_path, out, "--sample", {"type": "struct", "fields": fields})

    assert expected in proto
    assert check() == 0


@pytest.mark.parametrize(
    ("type_", "expected"),
    [
        (["null", "Row"], "// JSON. Unset for NULL.\n  optional string a"),
        (["null", "acme.Row"], "// JSON. Unset for NULL.\n  optional string a"),
        ({"type": "array", "items": "Row"}, "// JSON.\n  string a"),
        ({"type": "record", "name": "Inner", "fields": [{"name": "next", "type": "acme.Inner"}]}, "  A a = 2;"),
        ({"type": "fixed", "name": "Hash", "size": 16}, "bytes a"),
        (
            {"type": "fixed", "name": "D", "size": 8, "logicalType": "decimal"},
            "does not say how many.\n  string a = 2;",
        ),
        (
            {"type": "fixed", "name": "D", "size": 8, "logicalType": "decimal", "precision": 12, "scale": 2},
            "string a = 2 [(statecast.change.v1.decimal) = {precision: 12, scale: 2}];",
        ),
        (
            ["null", {"type": "bytes", "logicalType": "decimal", "precision": 9}],
            "optional string a = 2 [(statecast.change.v1.decimal) = {precision: 9, scale: 0}];",
        ),
        (
            {"type": "bytes", "logicalType": "decimal", "precision": 64, "scale": 2},
            "it has more than 38.\n  string a = 2;",
        ),
        ({"type": "map", "values": {"type": "enum", "name": "E", "symbols": ["X"]}}, "// JSON.\n  string a"),
        ({"type": "long", "connect.name": "io.debezium.time.MicroTimestamp"}, "google.protobuf.Timestamp a"),
    ],
)
def test_an_avro_schema_gives_fields_that_take_its_values(
    out: Path, tmp_path: Path, check: Callable[[], int], type_: object, expected: str
) -> None:
    fields = [{"name": "id", "type": "string"}, {"name": "a", "type": type_}]
    proto = imported(tmp_path, out, "--avro", {"type": "record", "name": "Row", "namespace": "acme", "fields": fields})

    assert expected in proto
    assert check() == 0


def test_avro_refers_to_types_by_full_name_and_within_the_namespace(out: Path, tmp_path: Path) -> None:
    kind = {"type": "enum", "name": "Kind", "namespace": "acme.kinds", "symbols": ["BIG"]}
    box = {"type": "record", "name": "Box", "fields": [{"name": "size", "type": "int"}]}
    fields = [
        {"name": "id", "type": "string"},
        {"name": "kind", "type": kind},
        {"name": "box", "type": box},
        {"name": "other_kind", "type": "acme.kinds.Kind"},
        {"name": "other_box", "type": "Box"},
    ]
    proto = imported(tmp_path, out, "--avro", {"type": "record", "name": "Row", "namespace": "acme", "fields": fields})

    assert "OtherKind other_kind = 4;" in proto
    assert "OtherBox other_box = 5;" in proto


def test_the_variable_of_the_database_leaves_a_document_alone(
    out: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STATECAST_DATABASE", "postgres://someone@127.0.0.1:1/none")

    assert "int64 id" in imported(tmp_path, out, "--sample", {"id": 1})
    assert not (out / "connector.json").exists()


@pytest.mark.parametrize("name", ["no", "on", "yes", "null", "True", "y"])
def test_names_that_yaml_takes_for_values_are_in_quotes(
    out: Path, tmp_path: Path, check: Callable[[], int], name: str
) -> None:
    (tmp_path / "row.json").write_text(json.dumps({name: "a", "case": 3}))
    command = ["import", "--sample", str(tmp_path / "row.json"), "--topic", name, "--key", name, "--key", name]
    shapes = ["--shape", "members", "--shape", "aggregate", "--group", name, "--sort", name, "--owner", name]

    assert statecast([*command, *shapes, "--out", str(out)]) == 0
    assert check() == 0
    [members] = [file for file in (out / "pipelines").glob("*-by-*.yaml") if "summed" not in file.name]
    assert yaml.safe_load(members.read_text())["source"]["key"] == name


@pytest.mark.parametrize(
    ("text", "more", "reason"),
    [
        ("[]", [], "it must be a JSON object"),
        ("{", [], "is not JSON"),
        ('{"id": 1}', ["--key", "ident"], "did you mean id?"),
        ('{"id": 1}', [], "--key is missing"),
        ("{}", ["--key", "id"], "it has no columns"),
        ('{"_id": 1}', ["--key", "_id"], "a field begins with a letter"),
        ('{"id": 1, "ID": 2}', ["--key", "id", "--key", "ID"], "'id' cannot be a field: it differs from ID in case"),
        ('{"before": null, "after": null, "op": "r"}', ["--key", "id"], "the change has no row"),
        ('{"type": "struct", "fields": [{"field": "a", "type": "struct"}]}', ["--key", "a"], "lacks 'fields'"),
        ('{"type": "struct", "fields": [{"field": "a", "type": "sting"}]}', ["--key", "a"], "did you mean string?"),
        ('{"id": 1}', ["--key", "id", "--topic", "my rows"], "'my rows' is no topic"),
        ('{"id": 1}', ["--key", "id", "--topic", ".."], "'..' is no topic"),
        ('{"id": 1}', ["--key", "id", "--topic", "x" * 250], "is no topic"),
        ('{"id": 1}', ["--key", "id", "--topic", "x" * 249], "take a --name of at most 56"),
        (
            '{"id": 1}',
            ["--key", "id", "--topic", "x" * 238, "--name", "x"],
            "a source has at most 237: .dead-letter",
        ),
        ('{"id": 1}', ["--key", "id", "--topic", "push-channels"], "every system has a topic push-channels"),
        ('{"id": 1, "\\ud800": 2}', ["--key", "id"], "document.json: a name has half of a character"),
        ('{"id": 1, "a": ' + '{"a": ' * 800 + "1" + "}" * 801, ["--key", "id"], "document.json: it is nested too deep"),
        ('{"rows": 1, "id": 1}', ["--key", "id", "--group", "rows", "--shape", "aggregate"], "nothing is written"),
    ],
)
def test_a_document_that_is_no_table_is_refused(
    out: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, more: list[str], reason: str
) -> None:
    (tmp_path / "document.json").write_text(text)
    command = ["import", "--sample", str(tmp_path / "document.json"), "--topic", "parcels", *more, "--out", str(out)]

    assert statecast(command) == 2
    assert reason in capsys.readouterr().err
    assert not out.exists()


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        (None, "lacks 'fields'"),
        ([{"name": "id"}], "lacks 'type'"),
        ([{"name": "id", "type": "strng"}], "id has the type 'strng', which is not declared; did you mean string?"),
        ([{"name": "id", "type": {"type": "array"}}], "lacks 'items'"),
        ([{"name": "id", "type": 3}], "has a type that is none of Avro's"),
    ],
)
def test_an_avro_schema_that_is_wrong_is_refused(
    out: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], fields: object, reason: str
) -> None:
    schema = {"type": "record", "name": "Row", **({} if fields is None else {"fields": fields})}
    (tmp_path / "row.avsc").write_text(json.dumps(schema))
    command = ["import", "--avro", str(tmp_path / "row.avsc"), "--topic", "rows", "--key", "id", "--out", str(out)]

    assert statecast(command) == 2
    error = capsys.readouterr().err
    assert reason in error
    assert f"{tmp_path}/row.avsc: " in error
