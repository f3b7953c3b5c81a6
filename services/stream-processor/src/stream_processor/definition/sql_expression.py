"""Finds the names and types in a SQL expression without Spark, as far as the contract tells them."""

from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise
from types import MappingProxyType

from google.protobuf.descriptor import EnumDescriptor
from sqlglot import exp

from stream_processor.definition.sql_syntax import parse, shown
from stream_processor.definition.sql_types import Scope, Type, check_value, field_of
from stream_processor.errors import ContractError

Names = Mapping[str, Type | None]
"""The parameters of the lambda functions around an expression."""
NO_NAMES: Names = MappingProxyType({})

_BOOL, _INTEGER, _FLOAT, _STRING = Type("bool"), Type("integer"), Type("float"), Type("string")
_COMPARISONS = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ, exp.NullSafeNEQ)
_TEXT_FUNCTIONS = (exp.Concat, exp.Repeat, exp.Right, exp.Left, exp.Substring, exp.Upper, exp.Lower, exp.Trim, exp.Pad)
_RESULTS: tuple[tuple[tuple[type[exp.Expr], ...], Type], ...] = (
    ((exp.Length, exp.ArraySize), _INTEGER),
    (_TEXT_FUNCTIONS, _STRING),
    ((exp.Predicate, exp.Boolean), _BOOL),
)
_CASTS: Mapping[str, Type] = {
    **dict.fromkeys(("TINYINT", "SMALLINT", "INT", "BIGINT"), _INTEGER),
    **dict.fromkeys(("FLOAT", "DOUBLE", "DECIMAL"), _FLOAT),
    **dict.fromkeys(("TEXT", "VARCHAR", "CHAR"), _STRING),
    **dict.fromkeys(("TIMESTAMP", "TIMESTAMPTZ"), Type("timestamp")),
    "BOOLEAN": _BOOL,
}


def type_of(sql: str, scope: Scope) -> Type | None:
    """What the expression gives; None when only Spark can tell.

    Raises ContractError for what is no expression, for unknown names with the nearest one, and for types that do not
    go together.
    """
    return _Reader(scope).read(parse(sql), NO_NAMES)


class _Reader:
    """Finds the type of each part of an expression, from the outside in."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._rules: tuple[tuple[tuple[type[exp.Expr], ...], Callable[..., Type | None]], ...] = (
            ((exp.Column,), self._column),
            ((exp.Identifier,), self._identifier),
            ((exp.Dot,), self._dot),
            ((exp.Bracket,), self._bracket),
            ((exp.Paren,), lambda node, names: self.read(node.this, names)),
            ((exp.PropertyEQ,), lambda node, names: self.read(node.expression, names)),
            ((exp.Literal,), self._literal),
            ((*_COMPARISONS,), self._comparison),
            ((exp.In,), self._in),
            ((exp.Between,), self._between),
            ((exp.And, exp.Or, exp.Not), self._logic),
            ((exp.IntDiv, exp.Mod, exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Neg), self._arithmetic),
            ((exp.Case, exp.If, exp.Coalesce), self._choice),
            ((exp.Cast,), self._cast),
        )

    def read(self, node: exp.Expr, names: Names) -> Type | None:
        for kinds, rule in self._rules:
            if isinstance(node, kinds):
                return rule(node, names)
        return self._other(node, names)

    def _other(self, node: exp.Expr, names: Names) -> Type | None:
        """Any other function: its arguments are read, those that are functions themselves with their parameters."""
        arguments = list(node.iter_expressions())
        read = [self.read(each, names) for each in arguments if not isinstance(each, exp.Lambda)]
        first = read[0] if read else None
        for each in arguments:
            if isinstance(each, exp.Lambda):
                self._lambda(each, first, names)
        if isinstance(node, exp.ArrayFilter):
            return first
        return next((found for kinds, found in _RESULTS if isinstance(node, kinds)), None)

    def _column(self, node: exp.Column, names: Names) -> Type | None:  # noqa: ARG002  a rule's signature
        return self._scope.path([part.name for part in node.parts])

    def _identifier(self, node: exp.Identifier, names: Names) -> Type | None:
        return names[node.name] if node.name in names else self._scope.path([node.name])

    def _dot(self, node: exp.Dot, names: Names) -> Type | None:
        parent = self.read(node.this, names)
        if parent is None or not isinstance(node.expression, exp.Identifier):
            return None
        return field_of(parent, node.expression.name, shown(node.this))

    def _bracket(self, node: exp.Bracket, names: Names) -> Type | None:
        for each in node.expressions:
            self.read(each, names)
        array = self.read(node.this, names)
        return array.element if array is not None and array.repeated else None

    def _literal(self, node: exp.Literal, names: Names) -> Type | None:  # noqa: ARG002  a rule's signature
        if node.is_string:
            return Type("string", literal=node.name)
        return _INTEGER if node.is_int else _FLOAT

    def _lambda(self, node: exp.Lambda, array: Type | None, names: Names) -> None:
        parameters = [each.name for each in node.expressions]
        element = array.element if array is not None and array.repeated else None
        # `aggregate` hands the element over second, after what it has so far; `transform` an index after the element.
        types = [None, element] if isinstance(node.parent, exp.Reduce) else [element, _INTEGER]
        self.read(node.this, {**names, **dict(zip(parameters, types, strict=False))})

    def _comparison(self, node: exp.Binary, names: Names) -> Type:
        _check_comparable(node, [self.read(node.left, names), self.read(node.right, names)])
        return _BOOL

    def _in(self, node: exp.In, names: Names) -> Type:
        found = self.read(node.this, names)
        for each in node.expressions:
            _check_comparable(node, [found, self.read(each, names)])
        return _BOOL

    def _between(self, node: exp.Between, names: Names) -> Type:
        _check_comparable(node, [self.read(node.args[part], names) for part in ("this", "low", "high")])
        return _BOOL

    def _logic(self, node: exp.Expr, names: Names) -> Type:
        for each in node.iter_expressions():
            _check_condition(each, self.read(each, names))
        return _BOOL

    def _arithmetic(self, node: exp.Expr, names: Names) -> Type | None:
        operands = [(each, self.read(each, names)) for each in node.iter_expressions()]
        kinds = {found.kind for _, found in operands if found is not None}
        if "timestamp" in kinds or node.find(exp.Interval) is not None:
            return None
        for each, found in operands:
            if found is not None and (found.repeated or found.group != "number"):
                raise ContractError(f"{shown(each)} is of type {found}; only numbers can be computed with")
        if None in (found for _, found in operands):
            return None
        return _FLOAT if isinstance(node, exp.Div) or "float" in kinds else _INTEGER

    def _choice(self, node: exp.Expr, names: Names) -> Type | None:
        branches = [node.args.get("default"), *node.expressions] if isinstance(node, exp.Case | exp.Coalesce) else []
        ifs = node.args["ifs"] if isinstance(node, exp.Case) else [node] if isinstance(node, exp.If) else []
        for each in ifs:
            condition = self.read(each.this, names)
            if node.this is None or isinstance(node, exp.If):
                _check_condition(each.this, condition)
            branches += [each.args["true"], each.args.get("false")]
        if isinstance(node, exp.Coalesce):
            branches.append(node.this)
        return _common([self.read(each, names) for each in branches if each is not None and not _is_null(each)])

    def _cast(self, node: exp.Cast, names: Names) -> Type | None:
        self.read(node.this, names)
        return _CASTS.get(node.to.this.name)


def _is_null(node: exp.Expr) -> bool:
    return isinstance(node, exp.Null)


def _check_condition(node: exp.Expr, found: Type | None) -> None:
    if found is not None and (found.kind != "bool" or found.repeated):
        raise ContractError(f"{shown(node)} is of type {found}; a condition is true or false")


def _check_comparable(node: exp.Expr, types: Iterable[Type | None]) -> None:
    known = [each for each in types if each is not None]
    for left, right in pairwise(known):
        either = {left.group, right.group}
        moment = either == {"timestamp", "text"} and "string" in (left.kind, right.kind)
        if left.repeated != right.repeated or (len(either) > 1 and not moment):
            raise ContractError(f"{shown(node)} compares {left} with {right}")
        for one, other in ((left, right), (right, left)):
            _check_enum(node, one, other)


def _check_enum(node: exp.Expr, one: Type, other: Type) -> None:
    if not isinstance(one.declared, EnumDescriptor):
        return
    if other.literal is not None:
        check_value(one.declared, other.literal)
    elif isinstance(other.declared, EnumDescriptor) and other.declared.full_name != one.declared.full_name:
        raise ContractError(f"{shown(node)} compares {one} with {other}")


def _common(types: list[Type | None]) -> Type | None:
    """The type that all branches have; texts beside an enum are values of it."""
    known = [each for each in types if each is not None]
    if len(known) < len(types) or not known:
        return None
    enum = next((each for each in known if each.kind == "enum"), None)
    if enum is not None and isinstance(enum.declared, EnumDescriptor):
        for each in known:
            if each.literal is not None:
                check_value(enum.declared, each.literal)
        known = [enum if each.literal is not None else each for each in known]
    first = known[0]
    return first if all(each == first for each in known) else _STRING if _all_text(known) else None


def _all_text(types: list[Type]) -> bool:
    return all(each.kind == "string" and not each.repeated for each in types)
