"""Reads a table from a document: a JSON sample, a schema of Kafka Connect beside or without its payload, or Avro's."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from statecast_onboarding.connector_file import read_json
from statecast_onboarding.errors import OnboardingError
from statecast_onboarding.sampled_columns import sampled_columns
from statecast_onboarding.schema_columns import AvroColumns, connect_columns, is_struct
from statecast_onboarding.table import Column, Table, usable

_SIDES = ("after", "before")
_ENVELOPE = {*_SIDES, "op", "source", "transaction", "ts_ms", "ts_us", "ts_ns"}


def read_sample(path: Path, topic: str, key: Sequence[str]) -> Table:
    """Reads a table from a row in JSON or a change of Debezium's, with or without schema. Raises OnboardingError."""
    document = read_json(path)
    if not isinstance(document, dict):
        raise OnboardingError(f"{path}: it must be a JSON object: one row, or one change")
    # A row may have columns of these names, too.
    wrapped = document.keys() <= {"schema", "payload"}
    schema = document.get("schema") if wrapped else document
    try:
        if is_struct(schema):
            return _table(topic, _row_of(connect_columns(schema)), key)
        payload = document.get("payload") if wrapped else document
        return _table(topic, _sampled(payload if isinstance(payload, dict) else document), key)
    except OnboardingError as error:
        raise _in_file(path, error) from error


def read_avro(path: Path, topic: str, key: Sequence[str]) -> Table:
    """Reads a table from an Avro schema of a row, or of Debezium's envelope of one. Raises OnboardingError."""
    schema = read_json(path)
    if not isinstance(schema, dict) or schema.get("type") != "record":
        raise OnboardingError(f"{path}: it must be the Avro schema of a record")
    try:
        return _table(topic, _row_of(AvroColumns().of_record(schema)), key)
    except OnboardingError as error:
        raise _in_file(path, error) from error


def _in_file(path: Path, error: OnboardingError) -> OnboardingError:
    return OnboardingError(f"{path}: {error}")


def _sampled(change: Mapping[str, Any]) -> tuple[Column, ...]:
    if not _is_envelope(change):
        return sampled_columns(change)
    row = next((change[side] for side in _SIDES if isinstance(change.get(side), dict)), None)
    if row is None:
        raise OnboardingError("the change has no row, neither before nor after")
    return sampled_columns(row)


def _row_of(columns: Sequence[Column]) -> tuple[Column, ...]:
    """Returns the columns of the row, if these are those of an envelope around it."""
    sides = {column.name: column.fields for column in columns if column.fields and column.name in _SIDES}
    envelope = sides and _is_envelope(column.name for column in columns)
    return next((sides[side] for side in _SIDES if side in sides), ()) if envelope else tuple(columns)


def _is_envelope(names: Iterable[str]) -> bool:
    present = set(names)
    return present <= _ENVELOPE and not present.isdisjoint(_SIDES)


def _table(topic: str, columns: Sequence[Column], key: Sequence[str]) -> Table:
    if not columns:
        raise OnboardingError("it has no columns")
    if not key:
        raise OnboardingError("--key is missing: the file does not say which columns are the row's primary key")
    names = tuple(dict.fromkeys(key))
    kept, left_out = usable(columns, names)
    table = Table(topic.rpartition(".")[2], topic, kept, names, left_out)
    for name in names:
        table.column(name)
    return table
