"""Columns from schemas: Kafka Connect's, and Avro's with the types that they name."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeGuard

from statecast_onboarding.errors import OnboardingError
from statecast_onboarding.table import (
    DATE,
    INTERVAL,
    MAX_PRECISION,
    TIME,
    TIME_IN_UTC,
    TIMESTAMP,
    Column,
    array_column,
    decimal_column,
    digits_column,
    enum_column,
    json_column,
)
from statecast_service.settings import suggest

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
_AVRO = {
    "null": "string",
    "string": "string",
    "int": "int32",
    "long": "int64",
    "float": "float",
    "double": "double",
    "boolean": "bool",
    "bytes": "bytes",
}
_COUNTED = f"{INTERVAL} Set interval.handling.mode=string at the connector: a count has lost the months."
_LOGICAL = {
    **dict.fromkeys(
        ("Timestamp", "MicroTimestamp", "NanoTimestamp", "ZonedTimestamp", "IsoTimestamp"), (TIMESTAMP, "")
    ),
    **dict.fromkeys(("Date", "IsoDate"), ("string", DATE)),
    **dict.fromkeys(("Time", "MicroTime", "NanoTime", "IsoTime"), ("string", TIME)),
    "ZonedTime": ("string", TIME_IN_UTC),
    "Interval": ("string", INTERVAL),
    **dict.fromkeys(("MicroDuration", "NanoDuration"), ("string", _COUNTED)),
    "Json": ("string", "JSON as text."),
    "Uuid": ("string", "A UUID."),
}
"""Debezium's and Connect's names of types, behind their packages."""
_LOGICAL_AVRO = {
    "date": ("string", DATE),
    "time-millis": ("string", TIME),
    "time-micros": ("string", TIME),
    "uuid": ("string", "A UUID."),
}
_PACKAGES = ("io.debezium.", "org.apache.kafka.connect.")


def is_struct(schema: object) -> TypeGuard[Mapping[str, Any]]:
    """Returns whether it is the schema that Kafka Connect has of a row or an envelope."""
    return isinstance(schema, dict) and schema.get("type") == "struct" and isinstance(schema.get("fields"), list)


def connect_columns(struct: Mapping[str, Any]) -> tuple[Column, ...]:
    """Returns the fields of a Kafka Connect struct. Raises OnboardingError for any other schema."""
    return tuple(_connect(_entry(field, "field", str), field) for field in _entry(struct, "fields", list))


def _connect(name: str, schema: Mapping[str, Any]) -> Column:
    type_, logical = _entry(schema, "type", str), schema.get("name") or ""
    column = Column(name, "string", bool(schema.get("optional")))
    if (known := _named_type(column, logical, schema.get("parameters"))) is not None:
        return known
    match type_:
        case "struct":
            return replace(column, type="message", fields=connect_columns(schema))
        case "array":
            return array_column(column, _connect(name, _entry(schema, "items", dict)))
        case "map":
            return json_column(column)
    if type_ not in _CONNECT:
        raise OnboardingError(f"{name} has the type {type_!r}, which Connect lacks; {suggest(type_, _CONNECT)}")
    return replace(column, type=_CONNECT[type_], note=f"A {logical}." if logical else "")


def _named_type(column: Column, name: object, parameters: object) -> Column | None:
    """Returns the column, if Debezium or Connect name its type."""
    if not isinstance(name, str) or not name.startswith(_PACKAGES):
        return None
    short = name.rpartition(".")[2]
    constraints = parameters if isinstance(parameters, dict) else {}
    if short == "Enum":
        labels = str(constraints.get("allowed") or "")
        return enum_column(column, labels.split(",") if labels else ())
    if short in ("Decimal", "VariableScaleDecimal"):
        return _decimal(column, constraints.get("connect.decimal.precision", MAX_PRECISION), constraints.get("scale"))
    return _of_type(column, _LOGICAL[short]) if short in _LOGICAL else None


def _decimal(column: Column, precision: object, scale: object) -> Column:
    """Returns the column with the digits that a schema gives as numbers or as texts."""
    try:
        return decimal_column(column, int(str(precision)), int(str(scale)))
    except ValueError:
        return digits_column(column, "the schema does not say how many.")


def _of_type(column: Column, known: tuple[str, str]) -> Column:
    return replace(column, type=known[0], note=" ".join(filter(None, (column.note, known[1]))))


class AvroColumns:
    """Reads the columns of one Avro schema, and keeps the types that it names for where it refers to them."""

    def __init__(self) -> None:
        self._types: dict[str, Mapping[str, Any]] = {}
        self._within: list[str] = []
        """The full names of the records that are being read, from the outermost on."""

    def of_record(self, schema: Mapping[str, Any], namespace: str = "") -> tuple[Column, ...]:
        """Returns the fields of a record. Raises OnboardingError for any other schema."""
        name = self._declare(schema, namespace)
        self._within.append(name)
        inner = name.rpartition(".")[0]
        fields = _entry(schema, "fields", list)
        columns = tuple(self._field(field, inner) for field in fields)
        self._within.pop()
        return columns

    def _field(self, field: Mapping[str, Any], namespace: str) -> Column:
        name = _entry(field, "name", str)
        return self._read(
            Column(name, "string", nullable=False, note=str(field.get("doc") or "")), _entry(field, "type"), namespace
        )

    def _read(self, column: Column, type_: object, namespace: str) -> Column:
        match type_:
            case list():
                return self._union(column, type_, namespace)
            case str() if type_ in _AVRO:
                return replace(column, type=_AVRO[type_], nullable=column.nullable or type_ == "null")
            case str():
                return self._reference(column, type_, namespace)
            case dict():
                return self._complex(column, type_, namespace)
        raise OnboardingError(f"{column.name} has a type that is none of Avro's: {type_!r}")

    def _union(self, column: Column, members: Sequence[object], namespace: str) -> Column:
        # Each is read, because later ones may refer to a type that it names.
        types = [self._read(column, each, namespace) for each in members if each != "null"]
        if len(types) != 1:
            return Column(column.name, "string", note="A union in the Avro schema: look at what the topic holds.")
        return replace(types[0], nullable=len(types) < len(members))

    def _reference(self, column: Column, name: str, namespace: str) -> Column:
        full = name if "." in name else _full_name(name, namespace)
        full = full if full in self._types else name
        if full not in self._types:
            known = [*_AVRO, *self._types]
            raise OnboardingError(f"{column.name} has the type {name!r}, which is not declared; {suggest(name, known)}")
        return self._declared(column, full)

    def _complex(self, column: Column, type_: Mapping[str, Any], namespace: str) -> Column:
        kind, logical = _entry(type_, "type"), str(type_.get("logicalType") or "")
        if kind in ("record", "enum", "fixed"):
            return self._declared(column, self._declare(type_, namespace))
        known = _named_type(column, type_.get("connect.name"), type_.get("connect.parameters"))
        if known is not None:
            return known
        if "timestamp" in logical:
            return replace(column, type=TIMESTAMP)
        if logical == "decimal":
            return _avro_decimal(column, type_)
        if logical in _LOGICAL_AVRO:
            return _of_type(column, _LOGICAL_AVRO[logical])
        match kind:
            case "array":
                return array_column(column, self._read(column, _entry(type_, "items"), namespace))
            case "map":
                self._read(column, _entry(type_, "values"), namespace)
                return json_column(column)
        return self._read(column, kind, namespace)

    def _declare(self, type_: Mapping[str, Any], namespace: str) -> str:
        """Keeps a type that has a name; returns the full one."""
        name = _entry(type_, "name", str)
        full = name if "." in name else _full_name(name, str(type_.get("namespace", namespace)))
        self._types[full] = type_
        return full

    def _declared(self, column: Column, name: str) -> Column:
        type_ = self._types[name]
        known = _named_type(column, type_.get("connect.name"), type_.get("connect.parameters"))
        if known is not None:
            return known
        match type_["type"]:
            case "enum":
                return enum_column(column, map(str, _entry(type_, "symbols", list)))
            case "fixed":
                is_decimal = type_.get("logicalType") == "decimal"
                return _avro_decimal(column, type_) if is_decimal else replace(column, type="bytes")
        if name in self._within:  # a message may hold itself, but Spark has no type for it
            return json_column(column)
        return replace(column, type="message", fields=self.of_record(type_, name.rpartition(".")[0]))


def _avro_decimal(column: Column, type_: Mapping[str, Any]) -> Column:
    return _decimal(column, type_.get("precision"), type_.get("scale", 0))


def _full_name(name: str, namespace: str) -> str:
    return f"{namespace}.{name}" if namespace else name


def _entry(schema: object, name: str, type_: type[Any] = object) -> Any:
    """Returns a schema's value under a name. Raises OnboardingError when it has none of that type."""
    if not isinstance(schema, dict) or not isinstance(schema.get(name), type_) or name not in schema:
        shown = str(schema)
        raise OnboardingError(f"a part of the schema lacks {name!r}: {shown if len(shown) <= 80 else f'{shown[:79]}…'}")
    return schema[name]
