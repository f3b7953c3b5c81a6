"""Fields of rows that only some consumers see, for example what each player of a game holds.

A private field is either a list, of whose elements each is shown to the consumer whose id stands in the element, or
anything else, which is shown to the consumer whose id stands in the row. Staff see all.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from google.protobuf.message import Message
from google.protobuf.struct_pb2 import Value

from statecast_service.settings import suggest

NOBODY = ""
"""The viewer of those who own nothing of a row."""


@dataclass(frozen=True, slots=True)
class PrivateField:
    """One private field. `path` are the names from the row to it; `owner` is a text of each element, or of the row."""

    path: tuple[str, ...]
    owner: str

    def check(self, row: type[Message]) -> None:
        """Raises ValueError when rows of the class have no such field, or it no such owner."""
        message: Any = row.DESCRIPTOR
        owners = message
        for depth, name in enumerate(self.path, 1):
            descriptor = message.fields_by_name.get(name)
            if descriptor is None:
                raise ValueError(f"{message.full_name} has no field {name!r}; {suggest(name, message.fields_by_name)}")
            if depth < len(self.path):
                if descriptor.message_type is None or descriptor.is_repeated:
                    raise ValueError(f"{name!r} holds no single message, so nothing of it can be private alone")
                message = descriptor.message_type
            elif _holds_messages(descriptor):
                owners = descriptor.message_type
        if owners.GetOptions().map_entry:
            raise ValueError(f"{self.path[-1]!r} is a map: use a repeated message with a field for its owner")
        texts = {each.name for each in owners.fields if each.type == each.TYPE_STRING and not each.is_repeated}
        if self.owner not in texts:
            raise ValueError(f"{owners.full_name} has no text field {self.owner!r}; {suggest(self.owner, texts)}")


@dataclass(eq=False, slots=True)
class PrivateRow:
    """A row with all of its fields, and what of it each consumer may see."""

    full: Message
    fields: tuple[PrivateField, ...]
    owners: frozenset[str] = field(init=False)
    """The consumers who see more of it than others do."""

    def __post_init__(self) -> None:
        self.owners = frozenset(owner for each in self.fields for owner in _owners(self.full, each)) - {NOBODY}

    def seen_by(self, viewer: str) -> Message:
        """A copy without what the viewer may not see."""
        row = type(self.full)()
        row.CopyFrom(self.full)
        for each in self.fields:
            if isinstance(row, Value):
                _hide_json(row, each, viewer, _text(self.full, each.owner))
            else:
                _hide(row, each, viewer, _text(self.full, each.owner))
        return row


def _owners(row: Message, private: PrivateField) -> Iterator[str]:
    yield _text(row, private.owner)
    for element in _elements(row, private):
        yield _text(element, private.owner)


def _elements(row: Message, private: PrivateField) -> Iterator[Message]:
    container, name = _container(row, private), private.path[-1]
    if isinstance(container, Value):
        held = container.struct_value.fields
        if name in held and held[name].WhichOneof("kind") == "list_value":
            yield from held[name].list_value.values
    elif container is not None and _is_list_of_messages(container, name):
        yield from getattr(container, name)


def _container(row: Message, private: PrivateField) -> Message | None:
    """The message or object that holds the field; None when the row has none."""
    message: Any = row
    for name in private.path[:-1]:
        if isinstance(message, Value):
            if name not in message.struct_value.fields:
                return None
            message = message.struct_value.fields[name]
        elif not message.HasField(name):
            return None
        else:
            message = getattr(message, name)
    return message if not isinstance(message, Value) or message.WhichOneof("kind") == "struct_value" else None


def _is_list_of_messages(message: Message, name: str) -> bool:
    return _holds_messages(message.DESCRIPTOR.fields_by_name[name])


def _holds_messages(descriptor: Any) -> bool:
    """Whether a field, by its descriptor, is a list of messages."""
    return bool(descriptor.is_repeated and descriptor.message_type is not None)


def _text(message: Message, name: str) -> str:
    """What a text field holds; nothing where there is no such field."""
    if not isinstance(message, Value):
        return str(getattr(message, name, NOBODY))
    if message.WhichOneof("kind") != "struct_value" or name not in message.struct_value.fields:
        return NOBODY
    return message.struct_value.fields[name].string_value


def _hide(row: Message, private: PrivateField, viewer: str, owner: str) -> None:
    container, name = _container(row, private), private.path[-1]
    if container is None:
        return
    if _is_list_of_messages(container, name):
        _keep_own(getattr(container, name), private.owner, viewer)
    elif not viewer or owner != viewer:
        container.ClearField(name)


def _hide_json(row: Value, private: PrivateField, viewer: str, owner: str) -> None:
    container, name = _container(row, private), private.path[-1]
    if not isinstance(container, Value) or name not in container.struct_value.fields:
        return
    held = container.struct_value.fields
    if held[name].WhichOneof("kind") == "list_value":
        _keep_own(held[name].list_value.values, private.owner, viewer)
    elif not viewer or owner != viewer:
        del held[name]


def _keep_own(elements: Any, owner: str, viewer: str) -> None:
    for index in reversed(range(len(elements))):
        if not viewer or _text(elements[index], owner) != viewer:
            del elements[index]
