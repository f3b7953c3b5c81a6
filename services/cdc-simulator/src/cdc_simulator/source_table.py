"""A source table: its columns on disk, the triggers that log its changes, and the messages of its rows; pure."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import lru_cache
from operator import attrgetter
from types import UnionType
from typing import Any, Generic, TypeVar, get_args, get_type_hints

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from google.protobuf.timestamp_pb2 import Timestamp
from pydantic import TypeAdapter

Row = Any
"""A named tuple; its first field is the primary key, the whole number `number`."""

R = TypeVar("R")

LOG = "INSERT INTO change_log (source_table, transaction_id, commit_time_us, snapshot, before, after)"


# Cached because the same few stand in most changes, and making them is much of the work of a change; whoever puts one
# into a message copies it, so sharing it is safe.
@lru_cache(maxsize=1024)
def timestamp(us: int) -> Timestamp:
    """Returns the time in microseconds since 1970 UTC as a message, which must not be changed."""
    seconds, us = divmod(us, 1_000_000)
    return Timestamp(seconds=seconds, nanos=us * 1000)


class SourceTable(Generic[R]):
    """One table. The fields of its rows are its columns; its image of a row is the JSON array of them.

    The message of a row has the row's fields and properties: the id first, and the time `x` for `x_us`.
    """

    def __init__(
        self,
        name: str,
        row: type[R],
        value: type[Message],
        virtual: Mapping[str, str],
        key: str | None = None,
        checks: Sequence[str] = (),
    ) -> None:
        """`value` is the message on Kafka: that of a change, or that of the row itself, where each new row is an event.

        `virtual` are the expressions of further columns, `checks` the conditions on rows beside their types.

        `key` is the field of the message that keys the changes on Kafka, the id by default. When it changes with the
        row, that change gets the new one.
        """
        self.name, self.topic = name, name.replace("_", "-")
        self.value = value
        after = value.DESCRIPTOR.fields_by_name.get("after")
        self.has_events = after is None
        """Whether Kafka gets each new row as it is, and nothing when a row changes or is deleted."""
        self.types: Mapping[str, object] = get_type_hints(row)
        self.fields = tuple(self.types)
        self.virtual, self.checks = virtual, checks
        self._parser = TypeAdapter(row)
        descriptor: Any = (after and after.message_type) or value.DESCRIPTOR
        self.id = descriptor.fields[0].name
        """The field of the message that is the row's own."""
        self.row_id: Callable[[R], str] = attrgetter(self.id)
        self.key: Callable[[R], str] = attrgetter(key or self.id)
        self.message: Callable[[R], Message] = _message_maker(descriptor)
        """Makes the contract's message of a row."""
        fields, marks = ", ".join(self.fields), ", ".join("?" * len(self.fields))
        self.insert = f"INSERT INTO {name} ({fields}) VALUES ({marks})"  # noqa: S608  made of a domain's constants
        self.update = f"UPDATE {name} SET {' = ?, '.join(self.fields[1:])} = ? WHERE number = ?"  # noqa: S608  as above
        self.delete = f"DELETE FROM {name} WHERE number = ?"  # noqa: S608  as above
        self.select = f"SELECT {self._image(name)} FROM {name} WHERE number = ?"  # noqa: S608  as above

    def insert_values(self, row: Row) -> Sequence[Any]:
        """Returns the values for `insert`; tuples stand in their column as JSON."""
        return [json.dumps(value) if isinstance(value, tuple) else value for value in row]

    def update_values(self, row: Row) -> Sequence[Any]:
        number, *others = self.insert_values(row)
        return (*others, number)

    def row_of(self, image: str | None) -> R | None:
        """Returns the row of an image, which `select` and the log have; None without one."""
        return None if image is None else self._parser.validate_json(image)

    def definition(self) -> str:
        columns = [f"{name} {_column_type(name, kind)}" for name, kind in self.types.items()]
        virtual = [f"{name} TEXT GENERATED ALWAYS AS ({value}) VIRTUAL" for name, value in self.virtual.items()]
        columns[:1] = ["number INTEGER PRIMARY KEY AUTOINCREMENT", *virtual]
        lines = ",\n    ".join([*columns, *(f"CHECK ({check})" for check in self.checks)])
        return f"CREATE TABLE {self.name} (\n    {lines}\n)"

    def snapshot(self) -> str:
        """Returns the statement that logs all rows as they stand."""
        values = f"'{self.name}', transaction_id, commit_time_us, 1, NULL, {self._image(self.name)}"
        return f"{LOG} SELECT {values} FROM {self.name}, incarnation ORDER BY number"  # noqa: S608  as above

    def triggers(self) -> Iterator[str]:
        """Yields the triggers that log each change in its transaction, so that none is missed and none made up."""
        old, new = self._image("OLD"), self._image("NEW")
        for event, before, after in (("INSERT", "NULL", new), ("UPDATE", old, new), ("DELETE", old, "NULL")):
            values = f"'{self.name}', transaction_id, commit_time_us, 0, {before}, {after}"
            trigger = f"CREATE TRIGGER log_{event}_of_{self.name} AFTER {event} ON {self.name}"
            yield f"{trigger} BEGIN {LOG} SELECT {values} FROM incarnation; END"  # noqa: S608  as above

    def _image(self, row: str) -> str:
        columns = [f"json({row}.{name})" if get_args(kind) else f"{row}.{name}" for name, kind in self.types.items()]
        return f"json_array({', '.join(columns)})"


def _column_type(name: str, kind: object) -> str:
    if get_args(kind):  # JSON: one named tuple or null, or one of them or more
        layout = f"[{', '.join(get_type_hints(get_args(kind)[0]))}]"
        if isinstance(kind, UnionType):
            return f"TEXT /* {layout}, or null */"
        return f"TEXT NOT NULL CHECK (json_array_length({name}) > 0) /* [{layout}, ...] */"
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return f"TEXT NOT NULL CHECK ({name} IN ({', '.join(map(repr, map(str, kind)))}))"
    if kind is bool:
        return f"INTEGER NOT NULL CHECK ({name} IN (0, 1))"
    return "INTEGER NOT NULL" if kind is int else "TEXT NOT NULL"


def _message_maker(descriptor: Descriptor) -> Callable[[Any], Message]:
    message: Callable[..., Message] = GetMessageClass(descriptor)
    names = [each.name for each in descriptor.fields]
    converters = {each.name: convert for each in descriptor.fields if (convert := _converter(each))}
    times = {name for name, convert in converters.items() if convert is timestamp}
    attributes = attrgetter(*(f"{name}_us" if name in times else name for name in names))

    def message_of(row: Any) -> Message:
        values = dict(zip(names, attributes(row), strict=True))
        for name, convert in converters.items():
            values[name] = convert(values[name])
        return message(**values)

    return message_of


def _converter(field: FieldDescriptor) -> Callable[[Any], Any] | None:
    """Makes a message's value of a row's: a time, an enum's number or messages of tuples; None: it stays as it is."""
    if field.enum_type is not None:
        prefix = field.enum_type.values[0].name.removesuffix("UNSPECIFIED")
        numbers = {value.name.removeprefix(prefix): value.number for value in field.enum_type.values}
        return lru_cache(lambda member: numbers[member.name])
    if field.message_type is None:
        return None
    if field.message_type.full_name == Timestamp.DESCRIPTOR.full_name:
        return timestamp
    message: Callable[..., Message] = GetMessageClass(field.message_type)

    # Cached for the same reason as `timestamp`.
    @lru_cache(maxsize=16_384)
    def nested(value: Any) -> Message | None:
        return None if value is None else message(**value._asdict())

    return (lambda values: map(nested, values)) if field.is_repeated else nested
