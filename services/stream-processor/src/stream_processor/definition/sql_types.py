"""The types of SQL expressions, as far as the contract defines them, and the names that expressions can use."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor

from statecast_service.settings import suggest
from stream_processor.definition.contract import Kind, kind
from stream_processor.errors import ContractError

_GROUPS: Mapping[Kind, str] = {
    "integer": "number",
    "float": "number",
    "string": "text",
    "enum": "text",
    "bytes": "text",
}


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
        return _GROUPS.get(self.kind, self.kind)

    @property
    def element(self) -> "Type":
        """The type of one value of a repeated one."""
        return replace(self, repeated=False)

    def __str__(self) -> str:
        one = self.kind if self.declared is None else self.declared.full_name
        return f"repeated {one}" if self.repeated else one


def of_field(field: FieldDescriptor) -> Type:
    """The type of a field's value."""
    field_kind = kind(field)
    declared = field.enum_type if field_kind == "enum" else field.message_type if field_kind == "message" else None
    return Type(field_kind, field.is_repeated, declared)


def of_message(message: Descriptor) -> Type:
    """The type of a row."""
    return Type("message", declared=message)


def field_of(parent: Type, name: str, shown: str) -> Type:
    """The type of the parent's field; of a repeated parent, the fields of all its elements.

    Raises ContractError with the nearest name; `shown` is how the parent is written.
    """
    if not isinstance(parent.declared, Descriptor):
        raise ContractError(f"{shown} is no message, it has no field {name!r}")
    fields = parent.declared.fields_by_name
    if name not in fields:
        raise ContractError(f"no field {name!r} in {parent.declared.full_name}; {suggest(name, fields)}")
    type_ = of_field(fields[name])
    return replace(type_, repeated=type_.repeated or parent.repeated)


def check_value(enum: EnumDescriptor, name: str) -> None:
    """Raises ContractError with the nearest name if the enum has no value of this one."""
    if name in enum.values_by_name:
        return
    nearest = next((each for each in enum.values_by_name if each.endswith(f"_{name.upper()}")), name)
    raise ContractError(f"{enum.full_name} has no value {name!r}; {suggest(nearest, enum.values_by_name)}")


class Scope:
    """The names that an expression can use: the fields of a row, the row as `row`, and what stands `beside` it."""

    def __init__(self, row: Descriptor, beside: Mapping[str, Type]) -> None:
        self._row = of_message(row)
        self._known = {"row": self._row, **beside, **{field.name: of_field(field) for field in row.fields}}

    def path(self, names: Sequence[str]) -> Type:
        """The type at the end of a path. Raises ContractError with the nearest name."""
        first = names[0]
        if first not in self._known:
            raise ContractError(f"no field {first!r} in {self._row}; {suggest(first, self._known)}")
        type_ = self._known[first]
        for number, name in enumerate(names[1:], start=1):
            type_ = field_of(type_, name, ".".join(names[:number]))
        return type_
