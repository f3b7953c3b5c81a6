"""Finds the names and types in a SQL expression without Spark, as far as the contract defines them."""

from collections.abc import Callable, Mapping

import sqlglot
from google.protobuf.descriptor import EnumDescriptor
from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ParseError, TokenError
from sqlglot.optimizer.annotate_types import annotate_types

from stream_processor.definition.sql_types import Scope, Type, check_value, field_of
from stream_processor.errors import ContractError

ParameterTypes = Mapping[str, Type | None]
"""The parameters of the lambda functions that enclose an expression."""
NO_PARAMETERS: ParameterTypes = {}

_BOOL, _FLOAT, _INTEGER, _STRING = Type("bool"), Type("float"), Type("integer"), Type("string")
_OF_SQLGLOT: tuple[tuple[set[exp.DType], Type], ...] = (
    (exp.DataType.INTEGER_TYPES, _INTEGER),
    (exp.DataType.REAL_TYPES, _FLOAT),
    (exp.DataType.TEXT_TYPES, _STRING),
    ({exp.DType.BOOLEAN}, _BOOL),
    ({exp.DType.TIMESTAMP, exp.DType.TIMESTAMPTZ}, Type("timestamp")),
)
_STAND_INS = {"integer": "BIGINT", "float": "DOUBLE", "string": "STRING", "bool": "BOOLEAN", "timestamp": "TIMESTAMP"}
"""The type of a name as sqlglot gets it; enums and messages, which SQL does not know, have none."""
_RULES = {kind: rule for kind, rule in Spark.EXPRESSION_METADATA.items() if kind not in (exp.Round, exp.DateTrunc)}
"""sqlglot's rules for types, where they agree with Spark: an integer rounded stays one, and trunc() gives a date."""
_COMPARISONS = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ, exp.NullSafeNEQ)
_REFUSED: Mapping[type[exp.Expr], str] = {
    exp.Query: "reads another table; that is what joins are for",
    exp.AggFunc: "is an aggregate; they go into keep.aggregate",
    exp.Window: "looks at other rows; an expression sees one",
    exp.Star: "stands for no value",
    exp.Alias: "gives a name; the key of the file is the name",
}
_CHANGING = (exp.Rand, exp.Randn, exp.Uuid, exp.CurrentTimestamp, exp.CurrentDate, exp.CurrentTime)
_CHANGING_NAMES = ("shuffle", "monotonically_increasing_id", "spark_partition_id", "input_file_name", "random", "now")


def type_of(sql: str, scope: Scope) -> Type | None:
    """What the expression gives; None when only Spark can tell.

    Raises ContractError for what is no expression, for unknown names with the nearest one, and for types that do not
    go together.
    """
    return _Reader(scope).read(parse(sql), NO_PARAMETERS)


class _Reader:
    """Finds the type of each part of an expression, from the outside in.

    The contract defines names, enums and messages, and what can be compared; sqlglot infers the rest.
    """

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._rules: tuple[tuple[tuple[type[exp.Expr], ...], Callable[..., Type | None]], ...] = (
            ((exp.Column,), lambda node, _: scope.path([part.name for part in node.parts])),
            ((exp.Identifier,), self._identifier),
            ((exp.Dot,), self._dot),
            ((exp.Bracket,), self._bracket),
            ((exp.Paren,), lambda node, parameters: self.read(node.this, parameters)),
            ((exp.PropertyEQ,), lambda node, parameters: self.read(node.expression, parameters)),
            ((exp.Literal,), lambda node, _: Type("string", literal=node.name) if node.is_string else _inferred(node)),
            ((*_COMPARISONS, exp.In, exp.Between), self._comparison),
            ((exp.And, exp.Or, exp.Not), self._logic),
            ((exp.IntDiv, exp.Mod, exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Neg), self._arithmetic),
            ((exp.Case, exp.If, exp.Coalesce), self._choice),
            ((exp.Cast,), self._cast),
        )

    def read(self, node: exp.Expr, parameters: ParameterTypes) -> Type | None:
        """The type of this part; what sqlglot infers of the parts around it builds on it."""
        rule = next((rule for kinds, rule in self._rules if isinstance(node, kinds)), self._function)
        result = rule(node, parameters)
        if result is not None and not result.repeated and result.kind in _STAND_INS:
            node.type = exp.DataType.build(_STAND_INS[result.kind], dialect="spark")
        return result

    def _function(self, node: exp.Expr, parameters: ParameterTypes) -> Type | None:
        """Any other function: its arguments are read, those that are functions themselves with their parameters."""
        arguments = list(node.iter_expressions())
        types = [self.read(each, parameters) for each in arguments if not isinstance(each, exp.Lambda)]
        first = types[0] if types else None
        for each in arguments:
            if isinstance(each, exp.Lambda):
                self._lambda(each, first, parameters)
        return first if isinstance(node, exp.ArrayFilter) else _inferred(node)

    def _identifier(self, node: exp.Identifier, parameters: ParameterTypes) -> Type | None:
        return parameters[node.name] if node.name in parameters else self._scope.path([node.name])

    def _dot(self, node: exp.Dot, parameters: ParameterTypes) -> Type | None:
        parent = self.read(node.this, parameters)
        if parent is None or not isinstance(node.expression, exp.Identifier):
            return None
        return field_of(parent, node.expression.name, shown(node.this))

    def _bracket(self, node: exp.Bracket, parameters: ParameterTypes) -> Type | None:
        for each in node.expressions:
            self.read(each, parameters)
        array = self.read(node.this, parameters)
        return array.element if array is not None and array.repeated else None

    def _lambda(self, node: exp.Lambda, array: Type | None, parameters: ParameterTypes) -> None:
        names = [each.name for each in node.expressions]
        element = array.element if array is not None and array.repeated else None
        # `aggregate` hands the element over second, after what it has so far; `transform` an index after the element.
        types = [None, element] if isinstance(node.parent, exp.Reduce) else [element, _INTEGER]
        self.read(node.this, {**parameters, **dict(zip(names, types, strict=False))})

    def _comparison(self, node: exp.Expr, parameters: ParameterTypes) -> Type:
        types = [self.read(each, parameters) for each in node.iter_expressions()]
        first, *others = [each for each in types if each is not None] or [_BOOL]
        for other in others:
            _check_comparable(node, first, other)
        return _BOOL

    def _logic(self, node: exp.Expr, parameters: ParameterTypes) -> Type:
        for each in node.iter_expressions():
            _check_condition(each, self.read(each, parameters))
        return _BOOL

    def _arithmetic(self, node: exp.Expr, parameters: ParameterTypes) -> Type | None:
        operands = [(each, self.read(each, parameters)) for each in node.iter_expressions()]
        types = [type_ for _, type_ in operands]
        if node.find(exp.Interval) is not None or any(each is not None and each.kind == "timestamp" for each in types):
            return None
        for each, type_ in operands:
            if type_ is not None and (type_.repeated or type_.group != "number"):
                raise ContractError(f"{shown(each)} is of type {type_}; only numbers can be computed with")
        return None if None in types else _inferred(node)

    def _choice(self, node: exp.Expr, parameters: ParameterTypes) -> Type | None:
        if isinstance(node, exp.Coalesce):
            values = [node.this, *node.expressions]
        else:
            cases = node.args["ifs"] if isinstance(node, exp.Case) else [node]
            for case in cases:
                condition = self.read(case.this, parameters)
                if node is case or node.this is None:
                    _check_condition(case.this, condition)
            values = [*(case.args["true"] for case in cases), node.args.get("default"), node.args.get("false")]
        return _common([self.read(each, parameters) for each in values if each and not isinstance(each, exp.Null)])

    def _cast(self, node: exp.Cast, parameters: ParameterTypes) -> Type | None:
        self.read(node.this, parameters)
        return _inferred(node)


def _inferred(node: exp.Expr) -> Type | None:
    """The type that sqlglot infers of an expression whose parts have been read; None for what it does not know."""
    annotated = annotate_types(node, dialect="spark", expression_metadata=_RULES, overwrite_types=False).type
    declared = None if annotated is None else annotated.this
    return next((type_ for names, type_ in _OF_SQLGLOT if declared in names), None)


def _check_condition(node: exp.Expr, type_: Type | None) -> None:
    if type_ is not None and (type_.kind != "bool" or type_.repeated):
        raise ContractError(f"{shown(node)} is of type {type_}; a condition is true or false")


def _check_comparable(node: exp.Expr, left: Type, right: Type) -> None:
    groups = {left.group, right.group}
    moment = groups == {"timestamp", "text"} and "string" in (left.kind, right.kind)
    if left.repeated != right.repeated or (len(groups) > 1 and not moment):
        raise ContractError(f"{shown(node)} compares {left} with {right}")
    for one, other in ((left, right), (right, left)):
        if not isinstance(one.declared, EnumDescriptor):
            continue
        if other.literal is not None:
            check_value(one.declared, other.literal)
        elif isinstance(other.declared, EnumDescriptor) and other.declared.full_name != one.declared.full_name:
            raise ContractError(f"{shown(node)} compares {one} with {other}")


def _common(types: list[Type | None]) -> Type | None:
    """The type that all branches have; texts beside an enum are values of it."""
    if not types or None in types:
        return None
    known = [each for each in types if each is not None]
    enum = next((each for each in known if isinstance(each.declared, EnumDescriptor)), None)
    if enum is not None and isinstance(enum.declared, EnumDescriptor):
        for each in known:
            if each.literal is not None:
                check_value(enum.declared, each.literal)
        known = [enum if each.literal is not None else each for each in known]
    if all(each == known[0] for each in known):
        return known[0]
    return _STRING if all(each.kind == "string" and not each.repeated for each in known) else None


def parse(sql: str) -> exp.Expr:
    """The expression. Raises ContractError for what is none, and for what is not a value of one row alone."""
    expression = _parse(sql)
    for node in expression.walk():
        for kinds, reason in _REFUSED.items():
            if isinstance(node, kinds):
                raise ContractError(f"{shown(node)} {reason}")
        if isinstance(node, _CHANGING) or (isinstance(node, exp.Anonymous) and node.name.lower() in _CHANGING_NAMES):
            raise ContractError(f"{shown(node)} is another value each time; a change must always give the same record")
    return expression


def shown(node: exp.Expr) -> str:
    """The part of an expression as errors show it."""
    return node.sql(dialect="spark")


def _parse(sql: str) -> exp.Expr:
    try:
        expression = sqlglot.parse_one(sql, dialect="spark")
    except ParseError as error:
        place = error.errors[0] if error.errors else {}
        near = "".join(place.get(part) or "" for part in ("start_context", "highlight", "end_context")) or sql
        raise ContractError(f"is no SQL expression, near {near.strip()!r}") from error
    except TokenError as error:
        raise ContractError(f"is no SQL expression: {sql!r} ends within a text or a comment") from error
    if not isinstance(expression, exp.Condition | exp.Query | exp.Alias | exp.Star):
        raise ContractError(f"is no SQL expression: {sql!r}")
    return expression
