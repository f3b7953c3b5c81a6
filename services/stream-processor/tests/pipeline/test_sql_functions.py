"""Which functions may be called, against those that Spark has."""

from collections.abc import Iterator
from typing import Any, cast

import pytest
from pyspark.sql import SparkSession

from stream_processor.errors import ContractError
from stream_processor.pipeline.fields import Contract, Scope, scope_of
from stream_processor.pipeline.sql_expression import type_of
from stream_processor.pipeline.sql_functions import ALLOWED, FUNCTIONS
from testkit.repository_files import DOMAINS

NO_ROW_EXPRESSIONS = {"agg_funcs", "window_funcs", "generator_funcs", "misc_funcs", "table_funcs", "xml_funcs"}
"""Groups of Spark's documentation, of which no function may be called."""
SYNTAX = {"cast", "try_cast", "extract", "timestampdiff"}
"""Names that the parser takes for more than a function."""


@pytest.fixture
def scope(contract: Contract) -> Scope:
    return scope_of(contract.message("statecast.orders.v1.Order"), {})


@pytest.fixture
def groups(spark: SparkSession) -> dict[str, str]:
    """Spark's own functions, and the group of each."""
    catalyst = cast(Any, spark._jvm).org.apache.spark.sql.catalyst
    registry = catalyst.analysis.FunctionRegistry.builtin()
    return {info.getName(): info.getGroup() for info in _infos(registry)}


def _infos(registry: Any) -> Iterator[Any]:
    names = registry.listFunction()
    for number in range(names.size()):
        yield registry.lookupFunction(names.apply(number)).get()


def test_what_may_be_called_is_there_and_computes_on_one_row(groups: dict[str, str]) -> None:
    assert groups.keys() >= ALLOWED - SYNTAX
    assert {name: groups[name] for name in ALLOWED & groups.keys() if groups[name] in NO_ROW_EXPRESSIONS} == {}


def test_each_other_function_of_spark_is_refused(groups: dict[str, str], scope: Scope) -> None:
    operators = {"and", "between", "case", "div", "in", "not", "or", "when"}
    others = [name for name in groups.keys() - ALLOWED - operators if name.replace("_", "").isalnum()]

    assert {"reflect", "java_method", "current_user", "raise_error", "rand", "now", "uuid"} <= set(others)
    for name in others:
        for call in (f"{name}()", f"`{name}` (order_id)", f"upper({name.upper()}(order_id, 1))"):
            assert is_refused(call, scope), call


def is_refused(sql: str, scope: Scope) -> bool:
    try:
        type_of(sql, scope)
    except ContractError:
        return True
    return False


def test_no_function_that_may_be_called_changes_by_itself(spark: SparkSession) -> None:
    jvm = cast(Any, spark._jvm)
    expressions = "org.apache.spark.sql.catalyst.expressions"
    changing = [
        jvm.java.lang.Class.forName(f"{expressions}.{name}") for name in ("Nondeterministic", "CurrentTimestampLike")
    ]

    for info in _infos(jvm.org.apache.spark.sql.catalyst.analysis.FunctionRegistry.builtin()):
        if info.getName() in ALLOWED:
            of_function = jvm.java.lang.Class.forName(info.getClassName())
            assert not any(each.isAssignableFrom(of_function) for each in changing), info.getName()


@pytest.mark.parametrize(
    "sql",
    [
        "regexp_replace(customer_id, currency, '') <> 'z'",
        "regexp_replace(customer_id, 'a', currency) <> 'z'",
        "regexp_extract(customer_id, '(a)', length(currency)) = ''",
        "currency rlike customer_id",
        "currency not like 'a' || customer_id",
        "currency like any ('a', customer_id)",
        "like(currency, customer_id)",
        "split(currency, concat(',', customer_id))[0] = ''",
        "date_format(placed_at, currency) = ''",
        "get_json_object(currency, '$.' || customer_id) = ''",
        "date_trunc(currency, placed_at) is null",
        "round(total_cents / 3, cast(total_cents as int)) = 0",
    ],
)
def test_a_pattern_or_format_that_is_no_constant_is_refused(scope: Scope, sql: str) -> None:
    with pytest.raises(
        ContractError, match=r"is not a constant; .* takes its patterns, formats and digits as constants"
    ):
        type_of(sql, scope)


@pytest.mark.parametrize(
    "sql", ["repeat(currency, 2147483647)", "lpad(currency, 10001, ' ')", "round(total_cents, -10001)"]
)
def test_a_number_that_would_make_much_of_little_is_refused(scope: Scope, sql: str) -> None:
    with pytest.raises(ContractError, match=r"\d+ at character \d+ is too large; .* takes numbers up to 10,000"):
        type_of(sql, scope)


@pytest.mark.parametrize(
    "sql",
    [
        "concat(repeat('*', length(currency) - 4), right(currency, 4))",
        "currency like 'a%' escape '/' and currency not rlike r'\\d'",
        "currency like all ('a%', '%b')",
        "regexp_extract(currency, '(a)(b)', 2) = split(currency, ',', -1)[0]",
        "round(total_cents / 3, 2L) = bround(total_cents / 3)",
    ],
)
def test_constants_and_counts_of_the_row_may_be(scope: Scope, sql: str) -> None:
    type_of(sql, scope)


def test_the_readme_lists_them() -> None:
    readme = " ".join((DOMAINS / "README.md").read_text().split())

    for kind, names in FUNCTIONS.items():
        assert f"- **{kind}**: {names}" in readme
