"""The messages of the contract: their fields, the paths through them, and their kinds."""

from dataclasses import dataclass
from typing import Literal

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool

from statecast_service.settings import suggest
from stream_processor.errors import ContractError

TIMESTAMP = "google.protobuf.Timestamp"
Kind = Literal["string", "integer", "timestamp", "enum", "bool", "float", "bytes", "message"]

_KINDS: dict[int, Kind] = {
    FieldDescriptor.TYPE_STRING: "string",
    FieldDescriptor.TYPE_ENUM: "enum",
    FieldDescriptor.TYPE_BOOL: "bool",
    FieldDescriptor.TYPE_BYTES: "bytes",
    FieldDescriptor.TYPE_DOUBLE: "float",
    FieldDescriptor.TYPE_FLOAT: "float",
    FieldDescriptor.TYPE_MESSAGE: "message",
    FieldDescriptor.TYPE_GROUP: "message",
}


def kind(field: FieldDescriptor) -> Kind:
    """What one value of the field is; a Timestamp is a kind of its own."""
    if field.message_type is not None and field.message_type.full_name == TIMESTAMP:
        return "timestamp"
    return _KINDS.get(field.type, "integer")


@dataclass(frozen=True)
class FieldPath:
    """A path through messages to a value: `items.item_id`."""

    fields: tuple[FieldDescriptor, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The fields' names, outermost first."""
        return tuple(field.name for field in self.fields)

    @property
    def repeated(self) -> bool:
        """Whether the path gives many values of one row."""
        return any(field.is_repeated for field in self.fields)

    @property
    def element(self) -> "FieldPath | None":
        """The path up to its last repeated field, whose elements `element` names in SQL; None without such a field."""
        last = max((at for at, field in enumerate(self.fields) if field.is_repeated), default=None)
        return None if last is None else FieldPath(self.fields[: last + 1])

    @property
    def kind(self) -> Kind:
        """What one value at the end of the path is."""
        return kind(self.fields[-1])

    def __str__(self) -> str:
        return ".".join(self.names)


class Contract:
    """The messages of one serialized FileDescriptorSet, imports before the files that import them."""

    def __init__(self, descriptor_set: bytes) -> None:
        self.descriptor_set = descriptor_set
        self._messages: dict[str, Descriptor] = {}
        pool = DescriptorPool()
        for file in FileDescriptorSet.FromString(descriptor_set).file:
            pool.AddSerializedFile(file.SerializeToString())
            for message in pool.FindFileByName(file.name).message_types_by_name.values():
                self._messages[message.full_name] = message

    def message(self, name: str) -> Descriptor:
        """The message with this full name. Raises ContractError with the nearest name."""
        if name not in self._messages:
            own = [known for known in self._messages if not known.startswith("google.")]
            raise ContractError(f"no message {name!r} in the contract; {suggest(name, own)}")
        return self._messages[name]

    def path(self, message: Descriptor, text: str) -> FieldPath:
        """The path that `text` names from `message` on. Raises ContractError with the nearest name."""
        fields: list[FieldDescriptor] = []
        at: Descriptor | None = message
        for name in text.split("."):
            if at is None or at.full_name == TIMESTAMP:
                raise ContractError(f"{text!r}: {fields[-1].name} is no message, it has no field {name!r}")
            if name not in at.fields_by_name:
                raise ContractError(f"no field {name!r} in {at.full_name}; {suggest(name, at.fields_by_name)}")
            fields.append(at.fields_by_name[name])
            at = fields[-1].message_type
        return FieldPath(tuple(fields))
