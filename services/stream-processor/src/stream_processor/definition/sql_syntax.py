"""Parses SQL expressions, and refuses what is none, or has no place in a pipeline."""

from collections.abc import Mapping

import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError, TokenError

from stream_processor.errors import ContractError

_REFUSED: Mapping[type[exp.Expr], str] = {
    exp.Query: "reads another table; that is what joins are for",
    exp.AggFunc: "is an aggregate; they go into keep.aggregate",
    exp.Window: "looks at other rows; an expression sees one",
    exp.Star: "stands for no value",
    exp.Alias: "gives a name; the key of the file is the name",
}
_CHANGING = (exp.Rand, exp.Randn, exp.Uuid, exp.CurrentTimestamp, exp.CurrentDate, exp.CurrentTime)
_CHANGING_NAMES = ("shuffle", "monotonically_increasing_id", "spark_partition_id", "input_file_name", "random", "now")


def parse(sql: str) -> exp.Expr:
    """The expression. Raises ContractError for what is none, and for what is not a value of one row alone."""
    expression = _parse(sql)
    for node in expression.walk():
        _refuse(node)
    return expression


def shown(node: exp.Expr) -> str:
    """The part of an expression as errors show it."""
    return node.sql(dialect="spark")


def _parse(sql: str) -> exp.Expr:
    try:
        found = sqlglot.parse_one(sql, dialect="spark")
    except ParseError as error:
        told = error.errors[0] if error.errors else {}
        near = f"{told.get('start_context', '')}{told.get('highlight', '')}{told.get('end_context', '')}" or sql
        raise ContractError(f"is no SQL expression, near {near.strip()!r}") from error
    except TokenError as error:
        raise ContractError(f"is no SQL expression: {sql!r} ends within a text or a comment") from error
    if not isinstance(found, exp.Condition | exp.Query | exp.Alias | exp.Star):
        raise ContractError(f"is no SQL expression: {sql!r}")
    return found


def _refuse(node: exp.Expr) -> None:
    for kind, reason in _REFUSED.items():
        if isinstance(node, kind):
            raise ContractError(f"{shown(node)} {reason}")
    if isinstance(node, _CHANGING) or (isinstance(node, exp.Anonymous) and node.name.lower() in _CHANGING_NAMES):
        raise ContractError(f"{shown(node)} is another value each time; a change must always give the same record")
