"""Checks the SQL expressions of a pipeline's file: that each gives what its place needs."""

from google.protobuf.descriptor import Descriptor, FieldDescriptor

from stream_processor.definition.aggregates import Aggregate
from stream_processor.definition.contract import kind
from stream_processor.definition.sql_expression import type_of
from stream_processor.definition.sql_types import Scope, Type, check_value, of_field
from stream_processor.errors import ContractError

_INT64 = (FieldDescriptor.TYPE_INT64, FieldDescriptor.TYPE_SINT64, FieldDescriptor.TYPE_SFIXED64)


def check_condition(sql: str, scope: Scope) -> None:
    """Raises ContractError if the expression cannot be a condition."""
    found = type_of(sql, scope)
    if found is not None and (found.kind != "bool" or found.repeated):
        raise ContractError(f"is of type {found}; a condition is true or false")


def check_field(sql: str, field: FieldDescriptor, scope: Scope) -> None:
    """Raises ContractError if the expression cannot fill the field."""
    found, wanted = type_of(sql, scope), of_field(field)
    if found is None:
        if wanted.kind == "enum" or (wanted.kind == "message" and _holds_enums(field.message_type)):
            raise ContractError(f"nothing tells that {sql!r} gives a {wanted}; name a field of this type")
        return
    if found.literal is not None and wanted.kind == "enum" and field.enum_type is not None:
        check_value(field.enum_type, found.literal)
    elif not _fits(found, wanted):
        raise ContractError(f"is of type {found}; the field {field.name} is of type {wanted}")


def check_aggregate(aggregate: Aggregate, scope: Scope) -> None:
    """Raises ContractError if the aggregate cannot be computed exactly, or cannot fill its field."""
    field, function = aggregate.field, aggregate.function
    argument = None if aggregate.argument is None else type_of(aggregate.argument, scope)
    if argument is not None and argument.repeated:
        raise ContractError(f"{aggregate.argument} gives many values of one row; it must give one")
    if function in ("count", "sum"):
        if field.type not in _INT64 or field.is_repeated:
            raise ContractError(f"{function} is an int64; the field {field.name} is of type {of_field(field)}")
    elif function == "avg":
        if field.type != FieldDescriptor.TYPE_DOUBLE or field.is_repeated:
            raise ContractError(f"avg is a double; the field {field.name} is of type {of_field(field)}")
    elif argument is not None and not _fits(argument, of_field(field)):
        raise ContractError(f"{function} is of type {argument}; the field {field.name} is of type {of_field(field)}")
    if function in ("sum", "avg") and argument is not None and argument.kind != "integer":
        raise ContractError(f"{aggregate.argument} is of type {argument}; only integers can be summed exactly")


def _fits(found: Type, wanted: Type) -> bool:
    if found.repeated != wanted.repeated:
        return False
    if found.kind == "integer" and wanted.kind == "float":
        return True
    if found.kind == "enum" and wanted.kind == "string":
        return True
    declared = (each.declared and each.declared.full_name for each in (found, wanted))
    return found.kind == wanted.kind and len({*declared}) == 1


def _holds_enums(message: Descriptor | None) -> bool:
    fields = [] if message is None else message.fields
    return any(
        kind(field) == "enum" or (kind(field) == "message" and _holds_enums(field.message_type)) for field in fields
    )
