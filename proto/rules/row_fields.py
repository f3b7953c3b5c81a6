"""Fields of rows by which a store's definition says who may see them: checked against the message of the rows."""

from collections.abc import Collection, Sequence
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message


class RowFieldError(ValueError):
    """A field cannot say who may see a row. `wrong` is its name, and `valid` are the names that could stand there."""

    def __init__(self, text: str, wrong: str = "", valid: Collection[str] = ()) -> None:
        super().__init__(text)
        self.wrong = wrong
        self.valid = valid


def text_fields(row: type[Message]) -> frozenset[str]:
    """Returns the fields of a row that hold one text."""
    return _text_fields(row.DESCRIPTOR)


def _text_fields(message: Any) -> frozenset[str]:
    texts = (field for field in message.fields if field.type == FieldDescriptor.TYPE_STRING)
    return frozenset(field.name for field in texts if not field.is_repeated)


def holds_messages(field: Any) -> bool:
    """Returns whether a field, by its descriptor, is a list of messages."""
    return bool(field.is_repeated and field.message_type is not None)


def check_owner(row: type[Message], name: str) -> None:
    """Raises RowFieldError when the row has no text field of the name."""
    _check_owner(row.DESCRIPTOR, name)


def _check_owner(message: Any, name: str) -> None:
    valid = _text_fields(message)
    if name not in valid:
        raise RowFieldError(f"{message.full_name} has no text field {name!r}", name, valid)


def check_private(row: type[Message], path: Sequence[str], owner: str) -> None:
    """Raises RowFieldError when the row has no field at the path that can be private.

    `owner` is a text field of each element of a list of messages, or else of the row.
    """
    owners: Any = row.DESCRIPTOR
    holder = owners
    for depth, name in enumerate(path, 1):
        field = holder.fields_by_name.get(name)
        if field is None:
            raise RowFieldError(f"{holder.full_name} has no field {name!r}", name, holder.fields_by_name.keys())
        if depth < len(path):
            if field.message_type is None or field.is_repeated:
                raise RowFieldError(f"{name!r} holds no single message, so nothing of it can be private alone")
            holder = field.message_type
        elif holds_messages(field):
            owners = field.message_type
    if owners.GetOptions().map_entry:
        raise RowFieldError(f"{path[-1]!r} is a map: use a repeated message with a field for its owner")
    _check_owner(owners, owner)
