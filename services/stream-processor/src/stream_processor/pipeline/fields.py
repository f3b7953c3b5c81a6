"""The messages of the contract: the paths through them, the types of their fields, and the names that SQL can use."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool

from statecast_service.settings import suggest
from stream_processor.errors import ContractError
from stream_processor.pipeline.decimals import Decimal, check_decimals, decimal_of

TIMESTAMP = "google.protobuf.Timestamp"
Kind = Literal["string", "integer", "timestamp", "enum", "bool", "float", "bytes", "message", "decimal"]

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
    """Returns the kind of one value of the field; a Timestamp and a text that is a decimal are kinds of their own."""
    if decimal_of(field) is not None:
        return "decimal"
    if field.message_type is not None and field.message_type.full_name == TIMESTAMP:
        return "timestamp"
    return _KINDS.get(field.type, "integer")


def field_in(message: Descriptor, name: str) -> FieldDescriptor:
    """Returns the message's field with this name. Raises ContractError with the nearest name."""
    if name not in message.fields_by_name:
        raise ContractError(f"no field {name!r} in {message.full_name}; {suggest(name, message.fields_by_name)}")
    return message.fields_by_name[name]


def check_names(row: Descriptor) -> None:
    """Raises ContractError for fields that SQL cannot tell apart: it reads names in any case."""
    names: dict[str, str] = {}
    for field in row.fields:
        if (other := names.setdefault(field.name.lower(), field.name)) != field.name:
            raise ContractError(f"{row.full_name} has {other} and {field.name}, which SQL cannot tell apart")


@dataclass(frozen=True)
class FieldPath:
    """A path through messages to a value: `items.item_id`."""

    fields: tuple[FieldDescriptor, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(field.name for field in self.fields)

    @property
    def repeated(self) -> bool:
        """Whether the path gives many values of one row."""
        return any(field.is_repeated for field in self.fields)

    @property
    def element(self) -> "FieldPath | None":
        """The path up to its last repeated field, of which SQL calls an element `element`; None without one."""
        last = max((at for at, field in enumerate(self.fields) if field.is_repeated), default=None)
        return None if last is None else FieldPath(self.fields[: last + 1])

    @property
    def kind(self) -> Kind:
        return kind(self.fields[-1])

    @property
    def decimal(self) -> Decimal | None:
        return decimal_of(self.fields[-1])

    def __str__(self) -> str:
        return ".".join(self.names)


@dataclass(frozen=True)
class KeyPaths:
    """The paths to values that together name a row, a group or a member of one; most often one path."""

    paths: tuple[FieldPath, ...]

    @property
    def texts(self) -> tuple[str, ...]:
        """The paths as files write them."""
        return tuple(map(str, self.paths))

    @property
    def repeated(self) -> bool:
        """Whether one row has many of these keys; then there is one path."""
        return any(path.repeated for path in self.paths)

    @property
    def element(self) -> FieldPath | None:
        """The path up to the last repeated field of the one path; None where a row has one key."""
        return self.paths[0].element if self.repeated else None

    def __str__(self) -> str:
        return " + ".join(self.texts)


class Contract:
    """The messages of one serialized FileDescriptorSet, imports before the files that import them."""

    def __init__(self, descriptor_set: bytes) -> None:
        """Raises ConfigurationError for a field that is said to be a decimal and can be none."""
        self.descriptor_set = descriptor_set
        self._messages: dict[str, Descriptor] = {}
        pool = DescriptorPool()
        for file in FileDescriptorSet.FromString(descriptor_set).file:
            pool.AddSerializedFile(file.SerializeToString())
            for message in pool.FindFileByName(file.name).message_types_by_name.values():
                self._messages[message.full_name] = message
        check_decimals(self._messages.values())

    def message(self, name: str) -> Descriptor:
        """Returns the message with this full name. Raises ContractError with the nearest name."""
        if name not in self._messages:
            own = [known for known in self._messages if not known.startswith("google.")]
            raise ContractError(f"no message {name!r} in the contract, nor mounted; {suggest(name, own)}")
        return self._messages[name]

    def path(self, message: Descriptor, text: str, source: str = "") -> FieldPath:
        """Returns the path that `text` names from `message` on; the name of the source may stand before it.

        Raises ContractError with the nearest name.
        """
        fields: list[FieldDescriptor] = []
        if text.partition(".")[0] not in message.fields_by_name:
            text = text.removeprefix(f"{source}.")
        at: Descriptor | None = message
        for name in text.split("."):
            if at is None or (fields and at.full_name == TIMESTAMP):
                raise ContractError(f"{text!r}: {fields[-1].name} is no message, it has no field {name!r}")
            fields.append(field_in(at, name))
            at = fields[-1].message_type
        return FieldPath(tuple(fields))


@dataclass(frozen=True)
class Type:
    """The type of an expression; `declared` is its message or enum, `literal` the text of a constant."""

    kind: Kind
    repeated: bool = False
    declared: Descriptor | EnumDescriptor | None = None
    literal: str | None = None

    @property
    def group(self) -> str:
        """Types of one group can be compared with each other."""
        if self.kind in ("integer", "float", "decimal"):
            return "number"
        return "text" if self.kind in ("string", "enum", "bytes") else self.kind

    @property
    def element(self) -> "Type":
        """The type of one value of a repeated one."""
        return replace(self, repeated=False)

    def __str__(self) -> str:
        one = self.kind if self.declared is None else self.declared.full_name
        return f"repeated {one}" if self.repeated else one


Scope: TypeAlias = Mapping[str, Type | None]
"""The types of the names that an expression can use; None where only Spark knows."""


def of_field(field: FieldDescriptor) -> Type:
    """Returns the type of a field's value."""
    field_kind = kind(field)
    declared = field.enum_type if field_kind == "enum" else field.message_type if field_kind == "message" else None
    return Type(field_kind, field.is_repeated, declared)


def field_of(parent: Type, name: str, shown: str) -> Type:
    """Returns the type of the parent's field, repeated if either is. `shown` names the parent in the ContractError."""
    if not isinstance(parent.declared, Descriptor):
        raise ContractError(f"{shown} is no message, it has no field {name!r}")
    type_ = of_field(field_in(parent.declared, name))
    return replace(type_, repeated=type_.repeated or parent.repeated)


def as_value(type_: Type, enum: EnumDescriptor) -> Type:
    """Returns the type; of a constant text the enum.

    Raises ContractError with the nearest name if that is no value of it.
    """
    name = type_.literal
    if name is None:
        return type_
    if name not in enum.values_by_name:
        nearest = next((each for each in enum.values_by_name if each.endswith(f"_{name.upper()}")), name)
        raise ContractError(f"{enum.full_name} has no value {name!r}; {suggest(nearest, enum.values_by_name)}")
    return Type("enum", declared=enum)


def scope_of(row: Descriptor, beside: Mapping[str, Type]) -> Scope:
    """Returns the names that an expression can use: the row's fields, the row as `row`, and those `beside` it."""
    return {"row": Type("message", declared=row), **beside, **{field.name: of_field(field) for field in row.fields}}


def type_at(scope: Scope, names: Sequence[str]) -> Type | None:
    """Returns the type at the end of a path. Raises ContractError with the nearest name."""
    first = names[0]
    if first not in scope:
        raise ContractError(f"no field {first!r} in {scope['row']}; {suggest(first, scope)}")
    type_ = scope[first]
    for number, name in enumerate(names[1:], start=1):
        type_ = type_ and field_of(type_, name, ".".join(names[:number]))
    return type_
