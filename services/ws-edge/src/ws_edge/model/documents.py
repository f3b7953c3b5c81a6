"""Rows as JSON, as frames and REST show them, and the fields in which two versions of a row differ."""

from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from typing import Any, NamedTuple

from google.protobuf import json_format
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Error, Message
from google.protobuf.struct_pb2 import Value

from statecast.json_documents import document_of
from statecast.row_fields import text_fields
from ws_edge.errors import UnreadableRowError
from ws_edge.model.states import KeyState

LIBRARY = "google.protobuf"
"""The package of messages and enums with a form of their own in JSON."""
SCALARS: Mapping[int, Callable[[Any], Any]] = {
    FieldDescriptor.CPPTYPE_STRING: str,
    FieldDescriptor.CPPTYPE_BOOL: bool,
    FieldDescriptor.CPPTYPE_INT32: int,
    FieldDescriptor.CPPTYPE_UINT32: int,
    FieldDescriptor.CPPTYPE_INT64: str,
    FieldDescriptor.CPPTYPE_UINT64: str,
}
"""How numbers and texts are written: those of 64 bits as texts."""


def document(state: KeyState) -> Any:
    """Returns the row as JSON: a document unchanged, a message by `message_document`.

    Raises UnreadableRowError, which names the key, for a row that JSON cannot represent: with a time after the year
    9999, or with an Any of an unknown message or of garbage.
    """
    if state.document is None:
        row = state.row
        try:
            state.document = document_of(row) if isinstance(row, Value) else message_document(row)
        except (json_format.Error, Error, ValueError, TypeError) as error:
            text = f"the row of {state.key} cannot be shown as JSON, tell the operators: {error}"
            raise UnreadableRowError(text) from error
    return state.document


def message_document(message: Message, *, has_defaults: bool = True) -> Any:
    """Returns the message as proto3 JSON with the contract's names; with defaults, each field without presence.

    It takes a third of the time that the library takes, to which it leaves messages with rarer kinds of fields.
    """
    forms = _forms(message.DESCRIPTOR, has_defaults)
    if forms is None:
        return json_format.MessageToDict(
            message, preserving_proto_field_name=True, always_print_fields_with_no_presence=has_defaults
        )
    document = {}
    for field, value in message.ListFields():
        form = forms[field]
        document[form.name] = form.write(value)
    if has_defaults and len(document) < len(forms):
        for form in forms.values():
            if form.default is not None and form.name not in document:
                document[form.name] = form.default()
    return document


def changed_names(before: Message, after: Message) -> frozenset[str] | None:
    """Returns the names of the top-level fields that differ between two rows; None when a row that differs has none."""
    if type(before) is not type(after):
        return None
    if isinstance(before, Value) and isinstance(after, Value):
        if not (before.HasField("struct_value") and after.HasField("struct_value")):
            return frozenset() if before == after else None
        old, new = before.struct_value.fields, after.struct_value.fields
        return frozenset(name for name in {*old, *new} if name not in old or name not in new or old[name] != new[name])
    old_fields, new_fields = dict(_fields_of(before)), dict(_fields_of(after))
    names = old_fields.keys() | new_fields.keys()
    return frozenset(name for name in names if old_fields.get(name) != new_fields.get(name))


def field_holding(state: KeyState, text: str) -> str:
    """Returns the name of the row's first text field with this value; empty when there is none."""
    row = state.row
    if not text:
        return ""
    if isinstance(row, Value):
        fields = row.struct_value.fields
        return next((name for name in sorted(fields) if fields[name].string_value == text), "")
    return next((name for name in sorted(text_fields(type(row))) if getattr(row, name) == text), "")


def _fields_of(row: Message) -> list[tuple[str, Any]]:
    return [(field.name, value) for field, value in row.ListFields()]


class _Form(NamedTuple):
    """How a field is written."""

    name: str
    write: Callable[[Any], Any]
    default: Callable[[], Any] | None
    """Writes the field where it is not set; None for a field with presence."""


@lru_cache(maxsize=1024)
def _forms(message: Descriptor, has_defaults: bool) -> dict[FieldDescriptor, _Form] | None:
    """Returns how each field of a message is written; None when the message is left to the library."""
    writers = [(field, _writer(field, has_defaults)) for field in message.fields]
    if message.file.package == LIBRARY or message.is_extendable or any(write is None for _, write in writers):
        return None
    return {field: _form(field, write) for field, write in writers if write is not None}


def _form(field: FieldDescriptor, write: Callable[[Any], Any]) -> _Form:
    if field.is_repeated:
        return _Form(field.name, lambda values: [*map(write, values)], list)
    return _Form(field.name, write, None if field.has_presence else partial(write, field.default_value))


def _writer(field: FieldDescriptor, has_defaults: bool) -> Callable[[Any], Any] | None:
    """Returns the function that writes a value of the field; None when it is left to the library."""
    below, enum = field.message_type, field.enum_type
    if below is not None:
        return None if below.GetOptions().map_entry else partial(message_document, has_defaults=has_defaults)
    if enum is not None:
        if enum.file.package == LIBRARY or enum.is_closed or any(value.has_options for value in enum.values):
            return None
        return partial(_enum_name, {number: value.name for number, value in enum.values_by_number.items()})
    return SCALARS.get(field.cpp_type) if field.type != FieldDescriptor.TYPE_BYTES else None


def _enum_name(names: Mapping[int, str], number: int) -> str | int:
    return names.get(number, number)
