"""Reads a table from a document: a JSON sample, a schema of Kafka Connect beside or without its payload, or Avro's."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from statecast_onboarding.errors import OnboardingError
from statecast_onboarding.table import TIMESTAMP, Column, Table, enum_column, usable

_CONNECT = {
    "int8": "int32",
    "int16": "int32",
    "int32": "int32",
    "int64": "int64",
    "float": "float",
    "float32": "float",
    "double": "double",
    "float64": "double",
    "boolean": "bool",
    "string": "string",
    "bytes": "bytes",
}
_AVRO = {"int": "int32", "long": "int64", "float": "float", "double": "double", "boolean": "bool", "bytes": "bytes"}
_LOGICAL = {"date": ("string", "An RFC 3339 full-date."), "decimal": ("string", "Digits, exactly.")}
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d.*")
_MAX_INT64 = 2**63


def read_sample(path: Path, topic: str, key: Sequence[str]) -> Table:
    """A table from one row in JSON, or one change of Debezium's, with or without its schema. Raises OnboardingError."""
    document = _json(path)
    if not isinstance(document, dict):
        raise OnboardingError(f"{path}: it must be a JSON object: one row, or one change")
    schema: Any = document.get("schema", document)
    if _is_connect(schema):
        rows = {field.get("field"): field for field in schema["fields"]}
        columns = [_connect(field) for field in rows.get("after", schema)["fields"]]
    else:
        change = document.get("payload", document)
        row = next((change[side] for side in ("after", "before") if isinstance(change.get(side), dict)), change)
        columns = [_sampled(name, value) for name, value in row.items()]
    return _table(path, topic, columns, key)


def read_avro(path: Path, topic: str, key: Sequence[str]) -> Table:
    """A table from an Avro schema of a row, or of Debezium's envelope of one. Raises OnboardingError."""
    schema = _json(path)
    named: dict[str, Any] = {}
    if not isinstance(schema, dict) or schema.get("type") != "record":
        raise OnboardingError(f"{path}: it must be the Avro schema of a record")
    columns = [_avro(field, named) for field in schema["fields"]]
    row = next((column for column in columns if column.name in ("after", "before") and column.fields), None)
    envelope = {"op", "source"} <= {column.name for column in columns}
    rows = [column.fields for column in columns if column.name in ("before", "after") and column.fields]
    return _table(path, topic, rows[0] if row and envelope else columns, key)


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise OnboardingError(f"{path} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise OnboardingError(f"{path} is not JSON: {error}") from error


def _table(path: Path, topic: str, columns: Sequence[Column], key: Sequence[str]) -> Table:
    if not columns:
        raise OnboardingError(f"{path}: it has no columns")
    if not key:
        raise OnboardingError(f"--key is missing: {path} does not say which columns are the row's primary key")
    kept, left_out = usable(columns, tuple(key))
    maps = tuple(f"{column.name}: a map" for column in kept if column.type == "map")
    fields = tuple(column for column in kept if column.type != "map")
    table = Table(topic.rpartition(".")[2], topic, fields, tuple(key), left_out + maps)
    for name in key:
        table.column(name)
    return table


def _is_connect(schema: object) -> bool:
    return isinstance(schema, dict) and schema.get("type") == "struct" and isinstance(schema.get("fields"), list)


def _connect(field: Mapping[str, Any]) -> Column:
    name, logical, nullable = field["field"], field.get("name") or "", bool(field.get("optional"))
    if field["type"] == "array":
        element = _connect({**field["items"], "field": name})
        return Column(name, element.type, nullable, True, element.note, fields=element.fields)
    if field["type"] == "struct":
        return Column(name, "message", nullable, fields=tuple(map(_connect, field["fields"])))
    short = logical.rpartition(".")[2]
    if short in ("Timestamp", "MicroTimestamp", "NanoTimestamp", "ZonedTimestamp", "IsoTimestamp"):
        return Column(name, TIMESTAMP, nullable)
    if short in ("Date", "IsoDate", "Decimal", "VariableScaleDecimal"):
        return Column(name, "string", nullable, note=_LOGICAL["date" if "Date" in short else "decimal"][1])
    if short == "Enum":
        labels = (field.get("parameters") or {}).get("allowed", "")
        return enum_column(Column(name, "string", nullable), labels.split(",") if labels else ())
    return Column(name, _CONNECT.get(field["type"], "map"), nullable, note=f"A {logical}." if logical else "")


def _sampled(name: str, value: Any) -> Column:
    match value:
        case bool():
            return Column(name, "bool")
        case int() if abs(value) < _MAX_INT64:
            return Column(name, "int64")
        case int() | float():
            return Column(name, "double")
        case str() if _MOMENT.fullmatch(value):
            return Column(name, TIMESTAMP)
        case dict():
            return Column(name, "message", fields=tuple(_sampled(*each) for each in value.items()))
        case list():
            element = _sampled(name, value[0]) if value else Column(name, "string", note="Empty in the sample.")
            return Column(name, element.type, False, True, element.note, fields=element.fields)
    return Column(name, "string", note="Null in the sample: correct the type." if value is None else "")


def _avro(field: Mapping[str, Any], named: dict[str, Any]) -> Column:
    return _avro_type(field["name"], field["type"], named, field.get("doc", ""))


def _avro_type(name: str, type_: Any, named: dict[str, Any], note: str = "", nullable: bool = False) -> Column:
    if isinstance(type_, list):
        others = [each for each in type_ if each != "null"]
        if len(others) != 1:
            return Column(name, "string", note="A union in the Avro schema: look at what the topic holds.")
        return _avro_type(name, others[0], named, note, nullable=len(others) < len(type_))
    if isinstance(type_, str):
        if type_ in named:
            return _avro_type(name, named[type_], named, note, nullable)
        return Column(name, _AVRO.get(type_, "string"), nullable, note=note)
    if "name" in type_:
        named[type_["name"]] = type_
    return _avro_complex(Column(name, "string", nullable, note=note), type_, named)


def _avro_complex(column: Column, type_: Mapping[str, Any], named: dict[str, Any]) -> Column:
    logical = type_.get("logicalType", "")
    if "timestamp" in logical:
        return replace(column, type=TIMESTAMP)
    if logical in _LOGICAL:
        return replace(column, type=_LOGICAL[logical][0], note=_LOGICAL[logical][1])
    match type_["type"]:
        case "enum":
            return enum_column(column, type_["symbols"])
        case "record":
            return replace(column, type="message", fields=tuple(_avro(field, named) for field in type_["fields"]))
        case "array":
            return replace(_avro_type(column.name, type_["items"], named, column.note), repeated=True)
        case "map":
            return replace(column, type="map")
    return _avro_type(column.name, type_["type"], named, column.note, column.nullable)
