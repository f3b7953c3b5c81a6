"""Turns SQL expressions into columns whose integers never wrap.

Without ANSI mode Spark cuts what is beyond an integer's type like Java does, and with it the query would end. So each
operator is given the mode that Spark's own `try_add` and its kin have, in which such a result is null.
"""

from typing import Any, cast

from pyspark.sql import Column, SparkSession

_OPERATORS = ("Add", "Subtract", "Multiply")
"""Classes of Spark's whose integers grow. Of the others only the negative of the lowest integer does not fit: wraps."""


def exact(sql: str, spark: SparkSession) -> Column:
    """The expression as a column of frames of this session. Raises Spark's ParseException for what is none.

    `a + b`, `a - b` and `a * b` are null where their type cannot hold the result.
    """
    session, jvm = cast(Any, spark)._jsparkSession, cast(Any, spark._jvm)
    parsed = session.sessionState().sqlParser().parseExpression(sql)
    return Column(jvm.org.apache.spark.sql.classic.ExpressionUtils.column(_exact(parsed, jvm)))


def _exact(expression: Any, jvm: Any) -> Any:
    children = expression.children()
    if children.nonEmpty():
        inner = [_exact(children.apply(number), jvm) for number in range(children.size())]
        expression = expression.withNewChildren(jvm.PythonUtils.toSeq(inner))
    if expression.getClass().getSimpleName() not in _OPERATORS:
        return expression
    context = expression.evalContext()
    or_null = context.copy(
        jvm.org.apache.spark.sql.catalyst.expressions.EvalMode.TRY(), context.allowDecimalPrecisionLoss()
    )
    return expression.copy(expression.left(), expression.right(), or_null)
