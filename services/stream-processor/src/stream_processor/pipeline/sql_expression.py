"""Finds names and types in SQL expressions without Spark, and checks that each has the type that its place needs."""

from collections.abc import Callable, Mapping

import sqlglot
from google.protobuf.descriptor import EnumDescriptor, FieldDescriptor
from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ParseError, TokenError
from sqlglot.optimizer.annotate_types import annotate_types

from stream_processor.errors import ContractError
from stream_processor.pipeline.fields import Kind, Scope, Type, as_value, field_of, of_field, type_at
from stream_processor.pipeline.pipeline import Aggregate
from stream_processor.pipeline.sql_functions import check_calls, check_constants, is_moment, is_time

_BOOL, _INTEGER, _STRING, _DECIMAL = Type("bool"), Type("integer"), Type("string"), Type("decimal")
_DECIMALS = {exp.DType.DECIMAL, exp.DType.BIGDECIMAL}
_SQL_TYPES: Mapping[Kind, tuple[str, set[exp.DType]]] = {
    "integer": ("BIGINT", exp.DataType.INTEGER_TYPES),
    "decimal": ("DECIMAL", _DECIMALS),
    "float": ("DOUBLE", exp.DataType.REAL_TYPES - _DECIMALS),
    "string": ("STRING", exp.DataType.TEXT_TYPES),
    "bool": ("BOOLEAN", {exp.DType.BOOLEAN}),
    "timestamp": ("TIMESTAMP", {exp.DType.TIMESTAMP, exp.DType.TIMESTAMPTZ}),
}
"""The type that sqlglot gets of a name, and those that it infers. SQL does not know enums and messages."""
_UNLIKE_SPARK = (exp.Round, exp.DateTrunc, exp.SafeDivide)
_RULES = {kind: rule for kind, rule in Spark.EXPRESSION_METADATA.items() if kind not in _UNLIKE_SPARK}
"""sqlglot's rules for types, where they agree with Spark: an integer rounded stays one, trunc() gives a date, and
try_divide() of a decimal a decimal."""
CHANGING = "another time at each start; a change must always give the same record"
_COMPARISONS = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ, exp.NullSafeNEQ)
_COMPARING = (*_COMPARISONS, exp.In, exp.Between)
_REFUSED: Mapping[type[exp.Expr], str] = {
    exp.Query: "reads another table; that is what joins are for",
    exp.AggFunc: "is an aggregate; they go into keep.aggregate",
    exp.Window: "looks at other rows; an expression sees one",
    exp.Star: "stands for no value",
    exp.Alias: "gives a name; the key of the file is the name",
    exp.Parameter: "is a variable; there are none",
    exp.Placeholder: "is a variable; there are none",
    exp.JSONExtract: "has an arrow outside of a function that takes one",
}

_INT64 = (FieldDescriptor.TYPE_INT64, FieldDescriptor.TYPE_SINT64, FieldDescriptor.TYPE_SFIXED64)
_NUMBERS = {
    "count": ("an int64", _INT64),
    "sum": ("an int64 or a decimal", _INT64),
    "avg": ("a double", (FieldDescriptor.TYPE_DOUBLE,)),
}
"""Types that the field of an aggregate may have, and their name in messages."""
_WIDER = (("integer", "decimal"), ("integer", "float"), ("decimal", "float"), ("enum", "string"))


def type_of(sql: str, scope: Scope) -> Type | None:
    """Returns the expression's type by the contract, or as sqlglot infers it; None when only Spark can tell.

    Raises ContractError for text that is no expression, for unknown names, and for types that do not go together.
    """
    return _read(parse(sql), scope)


def _read(node: exp.Expr, scope: Scope) -> Type | None:
    """Returns the type of this part, and notes it: sqlglot infers the types of the parts around it from it."""
    rule = next((rule for kinds, rule in _TYPE_RULES if isinstance(node, kinds)), _function)
    result = rule(node, scope)
    if result is not None and not result.repeated and result.kind in _SQL_TYPES:
        node.type = exp.DataType.build(_SQL_TYPES[result.kind][0], dialect="spark")
    return result


def _dot(node: exp.Dot, scope: Scope) -> Type | None:
    parent = _read(node.this, scope)
    if parent is None or not isinstance(node.expression, exp.Identifier):
        return None
    return field_of(parent, node.expression.name, shown(node.this))


def _bracket(node: exp.Bracket, scope: Scope) -> Type | None:
    for each in node.expressions:
        _read(each, scope)
    return _element(_read(node.this, scope))


def _element(array: Type | None) -> Type | None:
    return array.element if array is not None and array.repeated else None


def _logic(node: exp.Expr, scope: Scope) -> Type:
    for each in node.iter_expressions():
        _condition(each, scope)
    return _BOOL


def _function(node: exp.Expr, scope: Scope) -> Type | None:
    """Reads the arguments of any other function; lambdas among them are read with their parameters."""
    arguments = [each for each in node.iter_expressions() if not isinstance(each, exp.DataType)]
    types = [_read(each, scope) for each in arguments if not isinstance(each, exp.Lambda)]
    first = types[0] if types else None
    for each in arguments:
        if isinstance(each, exp.Lambda):
            names, parameters = [parameter.name for parameter in each.expressions], _parameters(node, types)
            if len(names) > len(parameters) or len(set(names)) < len(names):
                raise ContractError(f"{shown(node)} hands over {len(parameters)} values, each under a name of its own")
            _read(each.this, {**scope, **dict(zip(names, parameters, strict=False))})
    return first if isinstance(node, exp.ArrayFilter) else _inferred(node)


def _parameters(node: exp.Expr, types: list[Type | None]) -> list[Type | None]:
    """Returns the types of the arguments that the function passes to its lambda.

    Raises ContractError for a function that takes no lambda.
    """
    element, second = (_element(each) for each in (*types, None, None)[:2])
    parameters: dict[str, list[Type | None]] = {
        "reduce": [None, element],  # the value so far, then the element
        "transform": [element, _INTEGER],  # the element, then its index
        "arrayfilter": [element, _INTEGER],
        "zip_with": [element, second],
        "exists": [element],
        "forall": [element],
    }
    name = (node.name if isinstance(node, exp.Anonymous) else node.key).lower()
    if name not in parameters:
        raise ContractError(f"{shown(node)} takes no lambda")
    return parameters[name]


def _comparison(node: exp.Expr, scope: Scope) -> Type:
    types = [_read(each, scope) for each in node.iter_expressions()]
    known = [each for each in types if each is not None]
    texts = [each for each in types if each is not None and each.group == "text"]
    if len(texts) < len(types) and any(is_moment(each.literal or "") for each in texts):
        raise ContractError(f"{shown(node)} compares with {CHANGING}")
    with_null = any(isinstance(each.unnest(), exp.Null) for each in node.iter_expressions())
    if with_null and not isinstance(node, exp.NullSafeEQ | exp.NullSafeNEQ):
        raise ContractError(f"{shown(node)} compares with null, which is never true; write `is null`")
    moments = any(each.kind == "timestamp" for each in known)
    for text in (each.literal for each in texts if moments and each.literal is not None):
        if not is_time(text):
            raise ContractError(f"{shown(node)} compares with {text!r}, a time is as '2024-08-28 10:00:00'")
    for other in known[1:]:
        _check_comparable(node, known[0], other)
    return _BOOL


def _arithmetic(node: exp.Expr, scope: Scope) -> Type | None:
    operands = [(each, _read(each, scope)) for each in node.iter_expressions()]
    types = [type_ for _, type_ in operands]
    if node.find(exp.Interval) is not None or any(each is not None and each.kind == "timestamp" for each in types):
        return None
    for each, type_ in operands:
        if type_ is not None and (type_.repeated or type_.group != "number"):
            raise ContractError(f"{shown(each)} is of type {type_}; only numbers can be computed with")
    return None if None in types else _inferred(node)


def _choice(node: exp.Expr, scope: Scope) -> Type | None:
    if isinstance(node, exp.Coalesce):
        values = [node.this, *node.expressions]
    else:
        cases = node.args["ifs"] if isinstance(node, exp.Case) else [node]
        for case in cases:
            (_condition if node is case or node.this is None else _read)(case.this, scope)
        values = [*(case.args["true"] for case in cases), node.args.get("default"), node.args.get("false")]
    return _common([_read(each, scope) for each in values if each and not isinstance(each, exp.Null)])


_TYPE_RULES: tuple[tuple[tuple[type[exp.Expr], ...], Callable[..., Type | None]], ...] = (
    ((exp.Column,), lambda node, scope: type_at(scope, [part.name for part in node.parts])),
    ((exp.Identifier,), lambda node, scope: type_at(scope, [node.name])),
    ((exp.Dot,), _dot),
    ((exp.Bracket,), _bracket),
    ((exp.Paren,), lambda node, scope: _read(node.this, scope)),
    ((exp.PropertyEQ,), lambda node, scope: _read(node.expression, scope)),
    ((exp.Literal,), lambda node, _: Type("string", literal=node.name) if node.is_string else _number(node)),
    (_COMPARING, _comparison),
    ((exp.And, exp.Or, exp.Not), _logic),
    ((exp.IntDiv, exp.Mod, exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Neg), _arithmetic),
    ((exp.Case, exp.If, exp.Coalesce), _choice),
)


def _number(node: exp.Literal) -> Type | None:
    """To Spark a number with a point and no exponent is a decimal."""
    is_decimal = "." in node.name and "e" not in node.name.lower()
    return _DECIMAL if is_decimal else _inferred(node)


def _inferred(node: exp.Expr) -> Type | None:
    """Returns the type that sqlglot infers of an expression with parts that have been read; None if it knows none."""
    annotated = annotate_types(node, dialect="spark", expression_metadata=_RULES, overwrite_types=False).type
    declared = None if annotated is None else annotated.this
    return next((Type(each) for each, (_, inferred) in _SQL_TYPES.items() if declared in inferred), None)


def check_condition(sql: str, scope: Scope) -> None:
    """Raises ContractError if the expression cannot be a condition."""
    _condition(parse(sql), scope)


def _condition(node: exp.Expr, scope: Scope) -> None:
    type_ = _read(node, scope)
    if type_ is not None and (type_.kind != "bool" or type_.repeated):
        raise ContractError(f"{shown(node)} is of type {type_}; a condition is true or false")


def _check_comparable(node: exp.Expr, left: Type, right: Type) -> None:
    groups = {left.group, right.group}
    moment = groups == {"timestamp", "text"} and "string" in (left.kind, right.kind)
    if left.repeated != right.repeated or (len(groups) > 1 and not moment):
        raise ContractError(f"{shown(node)} compares {left} with {right}")
    for one, other in ((left, right), (right, left)):
        if isinstance(one.declared, EnumDescriptor):
            declared = as_value(other, one.declared).declared
            if isinstance(declared, EnumDescriptor) and declared.full_name != one.declared.full_name:
                raise ContractError(f"{shown(node)} compares {one} with {other}")


def _common(types: list[Type | None]) -> Type | None:
    """Returns the type that all branches have; texts beside an enum are values of it."""
    known = [each for each in types if each is not None]
    if not known or len(known) < len(types):
        return None
    enum = next((each.declared for each in known if isinstance(each.declared, EnumDescriptor)), None)
    if enum is not None:
        known = [as_value(each, enum) for each in known]
    if all(each == known[0] for each in known):
        return known[0]
    return _STRING if all(each.kind == "string" and not each.repeated for each in known) else None


def parse(sql: str) -> exp.Expr:
    """Returns the parsed expression.

    Raises ContractError for text that is no expression, and for one that is not a value of one row alone.
    """
    try:
        expression = sqlglot.parse_one(sql, dialect="spark")
    except ParseError as error:
        place = error.errors[0] if error.errors else {}
        near = "".join(place.get(part) or "" for part in ("start_context", "highlight", "end_context")) or sql
        raise ContractError(f"is not a SQL expression, near {near.strip()!r}") from error
    except TokenError as error:
        raise ContractError(f"is not a SQL expression: {sql!r} ends within a text or a comment") from error
    except (LookupError, ValueError) as error:
        # Some of sqlglot's functions count on arguments that are not there.
        raise ContractError(f"is not a SQL expression: {sql!r} lacks an argument") from error
    if not isinstance(expression, exp.Condition | exp.Query | exp.Alias | exp.Star):
        raise ContractError(f"is not a SQL expression: {sql!r}")
    for node in expression.walk():
        for kinds, reason in _REFUSED.items():
            if isinstance(node, kinds):
                raise ContractError(f"{shown(node)} {reason}")
        if isinstance(node, exp.Literal) and is_moment(node.name) and not isinstance(node.parent, _COMPARING):
            raise ContractError(f"{shown(node)} is {CHANGING}")
    check_calls(sql)
    check_constants(sql)
    return expression


def shown(node: exp.Expr) -> str:
    return node.sql(dialect="spark")


def check_field(sql: str, field: FieldDescriptor, scope: Scope) -> None:
    """Raises ContractError if the expression cannot fill the field."""
    actual, declared_type = type_of(sql, scope), of_field(field)
    if actual is None:
        if _holds_enums(field):
            raise ContractError(f"nothing tells that {sql!r} gives a {declared_type}; name a field of this type")
        return
    if field.enum_type is not None:
        actual = as_value(actual, field.enum_type)
    if not _fits(actual, declared_type):
        raise ContractError(f"is of type {actual}; the field {field.name} is of type {declared_type}")


def check_aggregate(aggregate: Aggregate, scope: Scope) -> None:
    """Raises ContractError if the aggregate cannot be computed exactly, or cannot fill its field."""
    field, function = aggregate.field, aggregate.function
    argument = None if aggregate.argument is None else type_of(aggregate.argument, scope)
    if argument is not None and argument.repeated:
        raise ContractError(f"{aggregate.argument} gives many values of one row; it must give one")
    if function == "collect_set":
        _check_set(aggregate, argument)
    elif function in _NUMBERS:
        name, types = _NUMBERS[function]
        fits = field.type in types or (function == "sum" and of_field(field).kind == "decimal")
        if not fits or field.is_repeated:
            raise ContractError(f"{function} is {name}; the field {field.name} is of type {of_field(field)}")
    elif argument is not None and not _fits(argument, of_field(field)):
        raise ContractError(f"{function} is of type {argument}; the field {field.name} is of type {of_field(field)}")
    if function in ("sum", "avg") and argument is not None and argument.kind not in ("integer", "decimal"):
        raise ContractError(
            f"{aggregate.argument} is of type {argument}; only integers and decimals are summed exactly"
        )
    if function == "sum" and argument == _DECIMAL and of_field(field).kind == "integer":
        raise ContractError(f"{function} is of type {argument}; the field {field.name} is of type {of_field(field)}")


def _check_set(aggregate: Aggregate, argument: Type | None) -> None:
    declared = of_field(aggregate.field)
    if not declared.repeated or declared.kind not in ("string", "integer"):
        raise ContractError(f"a set goes into a repeated string or integer; {aggregate.field.name} is a {declared}")
    shown_as_text = argument is not None and argument.kind == "enum" and declared.kind == "string"
    if argument is not None and not shown_as_text and not _fits(argument, declared.element):
        raise ContractError(
            f"the set's values are of type {argument}; the field {aggregate.field.name} is a {declared}"
        )


def _fits(actual: Type, declared_type: Type) -> bool:
    names = {each.declared and each.declared.full_name for each in (actual, declared_type)}
    same = actual.kind == declared_type.kind and len(names) == 1
    wider = (actual.kind, declared_type.kind) in _WIDER
    return actual.repeated == declared_type.repeated and (same or wider)


def _holds_enums(field: FieldDescriptor) -> bool:
    inner = () if field.message_type is None else field.message_type.fields
    return field.enum_type is not None or any(_holds_enums(each) for each in inner)
