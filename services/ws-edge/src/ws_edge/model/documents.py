"""Rows as JSON, as frames and REST show them, and the fields in which two versions of a row differ."""

from typing import Any

from google.protobuf import json_format
from google.protobuf.message import Error, Message
from google.protobuf.struct_pb2 import Value

from statecast.json_documents import document_of
from statecast.row_fields import text_fields
from ws_edge.errors import UnreadableRowError
from ws_edge.model.states import KeyState


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


def message_document(message: Message) -> dict[str, Any]:
    """Returns the message as proto3 JSON with the contract's names, with each field without presence."""
    return json_format.MessageToDict(
        message, preserving_proto_field_name=True, always_print_fields_with_no_presence=True
    )


def frame_document(message: Message) -> dict[str, Any]:
    """Returns the fields that are set as proto3 JSON, of a message of texts, booleans and numbers of 32 bits.

    All parts of frames but rows are such messages. It takes a fourth of the time that the library takes.
    """
    document = dict[str, Any]()
    for field, value in message.ListFields():
        if field.message_type is None:
            document[field.name] = list(value) if field.is_repeated else value
        else:
            document[field.name] = [*map(frame_document, value)] if field.is_repeated else frame_document(value)
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
