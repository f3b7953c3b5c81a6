"""Fields of rows that only some consumers see, for example the hand of each player in a game of cards.

A private field is a list or anything else. An element of a list is shown to the consumer with the id that stands in
the element. Anything else is shown to the consumer with the id that stands in the row. Staff see all.

The message of a store says where the path of such a field leads. JSON does not: where an object lacks a name of the
path, staff alone see this object, because the private value may stand there under another name. That is the whole row
if it lacks the first name. A null says that nothing is there.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from google.protobuf.message import Message
from google.protobuf.struct_pb2 import NULL_VALUE, Value

from statecast.row_fields import holds_messages
from ws_edge.model.json_rows import text_of

NOBODY = ""
"""The viewer of those who own nothing of a row."""


@dataclass(frozen=True, slots=True)
class PrivateField:
    """One private field. `path` are the names from the row to it; `owner` is a text of each element, or of the row."""

    path: tuple[str, ...]
    owner: str


@dataclass(eq=False, slots=True)
class PrivateRow:
    """A row with all of its fields, and the part that each consumer may see."""

    full: Message
    fields: tuple[PrivateField, ...]
    owners: frozenset[str] = field(init=False)
    """The consumers who see more of it than others do."""
    missed: str = field(init=False)
    """The first path that leads to no value, so that more than a field is hidden; empty where all paths lead to one."""

    def __post_init__(self) -> None:
        missed = (each for each in self.fields if isinstance(self.full, Value) and not _leads(self.full, each))
        self.missed = next((".".join(each.path) for each in missed), "")
        self.owners = frozenset(owner for each in self.fields for owner in _owners(self.full, each)) - {NOBODY}

    def seen_by(self, viewer: str) -> Message:
        """Returns a copy without the parts that the viewer may not see."""
        row = type(self.full)()
        row.CopyFrom(self.full)
        for each in self.fields:
            if isinstance(row, Value) and isinstance(self.full, Value):
                _hide_json(row, self.full, each, viewer)
            else:
                _hide(row, each, viewer, _text(self.full, each.owner))
        return row


def _owners(row: Message, private: PrivateField) -> Iterator[str]:
    yield _text(row, private.owner)
    for element in _elements(row, private):
        yield _text(element, private.owner)


def _elements(row: Message, private: PrivateField) -> Iterator[Message]:
    if isinstance(row, Value):
        if _leads(row, private):
            yield from _trail(row, private)[-1].list_value.values
        return
    container, name = _container(row, private), private.path[-1]
    if container is not None and _is_list_of_messages(container, name):
        yield from getattr(container, name)


def _container(row: Message, private: PrivateField) -> Message | None:
    """Returns the message that holds the field; None when the row has none."""
    message: Any = row
    for name in private.path[:-1]:
        if not message.HasField(name):
            return None
        message = getattr(message, name)
    return message  # type: ignore[no-any-return]


def _trail(row: Value, private: PrivateField) -> list[Value]:
    """Returns the row and the values on the path below it, as far as the path's names exist."""
    trail = [row]
    for name in private.path:
        if trail[-1].WhichOneof("kind") != "struct_value" or name not in trail[-1].struct_value.fields:
            break
        trail.append(trail[-1].struct_value.fields[name])
    return trail


def _leads(row: Value, private: PrivateField) -> bool:
    """Returns whether the path leads to a value, or meets a null on its way; a null says that nothing is private."""
    trail = _trail(row, private)
    return len(trail) > len(private.path) or trail[-1].WhichOneof("kind") == "null_value"


def _is_list_of_messages(message: Message, name: str) -> bool:
    return holds_messages(message.DESCRIPTOR.fields_by_name[name])


def _text(message: Message, name: str) -> str:
    """Returns the content of a text field, of JSON also of a whole number; empty where there is no such field."""
    return text_of(message, name) if isinstance(message, Value) else str(getattr(message, name, NOBODY))


def _hide(row: Message, private: PrivateField, viewer: str, owner: str) -> None:
    container, name = _container(row, private), private.path[-1]
    if container is None:
        return
    if _is_list_of_messages(container, name):
        _keep_own(getattr(container, name), private.owner, viewer)
    elif not viewer or owner != viewer:
        container.ClearField(name)


def _hide_json(row: Value, full: Value, private: PrivateField, viewer: str) -> None:
    """Hides the field in `row`, where others may be hidden already; `full` says where the path leads."""
    depth, leads, trail = len(_trail(full, private)), _leads(full, private), _trail(row, private)
    held = trail[-1]
    if len(trail) < depth or held.WhichOneof("kind") == "null_value":
        return
    if leads and held.WhichOneof("kind") == "list_value":
        _keep_own(held.list_value.values, private.owner, viewer)
    elif not leads or not viewer or _text(full, private.owner) != viewer:
        if depth == 1:
            held.null_value = NULL_VALUE
        else:
            del trail[-2].struct_value.fields[private.path[depth - 2]]


def _keep_own(elements: Any, owner: str, viewer: str) -> None:
    for index in reversed(range(len(elements))):
        if not viewer or _text(elements[index], owner) != viewer:
            del elements[index]
