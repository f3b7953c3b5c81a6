"""Checks the SQL expressions and aggregates of a pipeline's file: that each gives what its place needs."""

import re

from google.protobuf.descriptor import Descriptor, FieldDescriptor

from statecast_service.settings import suggest
from stream_processor.definition.contract import kind
from stream_processor.definition.pipeline import AGGREGATE_FUNCTIONS, Aggregate, AggregateFunction
from stream_processor.definition.sql_expression import type_of
from stream_processor.definition.sql_types import Scope, Type, check_value, of_field
from stream_processor.errors import ContractError

_AGGREGATE = re.compile(r"(\w+)\s*\((.*)\)")
_INT64 = (FieldDescriptor.TYPE_INT64, FieldDescriptor.TYPE_SINT64, FieldDescriptor.TYPE_SFIXED64)


def check_condition(sql: str, scope: Scope) -> None:
    """Raises ContractError if the expression cannot be a condition."""
    type_ = type_of(sql, scope)
    if type_ is not None and (type_.kind != "bool" or type_.repeated):
        raise ContractError(f"is of type {type_}; a condition is true or false")


def check_field(sql: str, field: FieldDescriptor, scope: Scope) -> None:
    """Raises ContractError if the expression cannot fill the field."""
    actual, declared_type = type_of(sql, scope), of_field(field)
    if actual is None:
        if declared_type.kind == "enum" or (declared_type.kind == "message" and _holds_enums(field.message_type)):
            raise ContractError(f"nothing tells that {sql!r} gives a {declared_type}; name a field of this type")
        return
    if actual.literal is not None and declared_type.kind == "enum" and field.enum_type is not None:
        check_value(field.enum_type, actual.literal)
    elif not _fits(actual, declared_type):
        raise ContractError(f"is of type {actual}; the field {field.name} is of type {declared_type}")


def parse_aggregate(text: str) -> tuple[AggregateFunction, str | None]:
    """The function that `text` calls, and its argument. Raises ContractError for any other form."""
    call = _AGGREGATE.fullmatch(text)
    if call is None:
        raise ContractError(f"{text!r} is not of the form count(*) or sum(...)")
    name, argument = call[1].lower(), call[2].strip()
    function = next((each for each in AGGREGATE_FUNCTIONS if each == name), None)
    if function is None:
        raise ContractError(f"no aggregate {call[1]!r}; {suggest(name, AGGREGATE_FUNCTIONS)}")
    if (function == "count") != (argument == "*"):
        raise ContractError("count counts rows: count(*)" if function == "count" else f"{text!r} needs an expression")
    return function, None if function == "count" else argument


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


def _fits(actual: Type, declared_type: Type) -> bool:
    if actual.repeated != declared_type.repeated:
        return False
    if (actual.kind, declared_type.kind) in (("integer", "float"), ("enum", "string")):
        return True
    declared = (each.declared and each.declared.full_name for each in (actual, declared_type))
    return actual.kind == declared_type.kind and len({*declared}) == 1


def _holds_enums(message: Descriptor | None) -> bool:
    fields = [] if message is None else message.fields
    return any(
        kind(field) == "enum" or (kind(field) == "message" and _holds_enums(field.message_type)) for field in fields
    )
