"""SQL expressions without Spark: syntax, names and types."""

import pytest
from pyspark.sql import SparkSession

from stream_processor.errors import ContractError
from stream_processor.pipeline.fields import Contract, Scope, Type, scope_of
from stream_processor.pipeline.sql_expression import type_of
from stream_processor.steps.functions import row_type

STATUS = "statecast.sales.v1.CustomerType"


@pytest.fixture
def scope(contract: Contract) -> Scope:
    """An invoice beside its store."""
    invoice, store = (contract.message(f"statecast.sales.v1.{name}") for name in ("Invoice", "Store"))
    return scope_of(invoice, {"store": Type("message", declared=store)})


@pytest.mark.parametrize(
    ("sql", "type_name"),
    [
        ("total_amount_cents", "integer"),
        ("row", "statecast.sales.v1.Invoice"),
        ("row.delivery_address.city", "string"),
        ("store.name", "string"),
        ("customer_type", STATUS),
        ("lines", "repeated statecast.sales.v1.InvoiceLine"),
        ("lines.item_code", "repeated string"),
        ("lines[0].item_quantity", "integer"),
        ("filter(lines, line -> line.item_quantity > 1)", "repeated statecast.sales.v1.InvoiceLine"),
        ("total_amount_cents div 100 + 1", "integer"),
        ("total_amount_cents / 100", "float"),
        ("-total_amount_cents", "integer"),
        ("length(currency) > 3 and not (store.city = 'Rome')", "bool"),
        ("created_at > '2024-08-28'", "bool"),
        ("currency like 'E%' or currency is null or currency in ('EUR', 'USD')", "bool"),
        ("total_amount_cents between 1 and 2", "bool"),
        ("customer_type = 'CUSTOMER_TYPE_PRIME'", "bool"),
        ("exists(lines, line -> line.item_code = 'a')", "bool"),
        ("concat(repeat('*', length(currency) - 4), right(currency, 4))", "string"),
        ("if(currency = 'EUR', customer_type, 'CUSTOMER_TYPE_NON_PRIME')", STATUS),
        ("case currency when 'EUR' then 1 else 2 end", "integer"),
        ("coalesce(currency, '')", "string"),
        ("coalesce(store, null)", "statecast.sales.v1.Store"),
        ("cast(total_amount_cents as string)", "string"),
        ("true", "bool"),
        ("aggregate(lines, 0L, (sum, line) -> sum + line.item_price_cents)", "None"),
        ("created_at + interval 1 day", "None"),
        ("zip_with(lines, lines, (a, b) -> a.item_quantity + b.item_quantity)", "None"),
        ("currency = 'today' or currency in ('now')", "bool"),
        ("cast(total_amount_cents as decimal(20, 2))", "decimal"),
        ("total_amount_cents * 2.5", "decimal"),
        ("total_amount_cents * 2.5D", "float"),
        ("not (currency is null) and (currency like any ('E%'))", "bool"),
    ],
)
def test_the_contract_tells_the_type(scope: Scope, sql: str, type_name: str) -> None:
    assert str(type_of(sql, scope)) == type_name


@pytest.mark.parametrize(
    ("sql", "problem"),
    [
        ("curency = 'EUR'", "no field 'curency' in statecast.sales.v1.Invoice; did you mean currency?"),
        ("row.curency", "no field 'curency' .* did you mean currency?"),
        ("stor.name", "no field 'stor' .* did you mean store?"),
        ("store.nam", "no field 'nam' in statecast.sales.v1.Store; did you mean name?"),
        ("lines[0].item_cod", "no field 'item_cod' in statecast.sales.v1.InvoiceLine; did you mean item_code?"),
        ("exists(lines, line -> line.item_cod = 'a')", "no field 'item_cod' .* did you mean item_code?"),
        ("aggregate(lines, 0, (a, line) -> a + line.price)", "no field 'price' in statecast.sales.v1.InvoiceLine"),
        ("length(curency)", "no field 'curency'"),
        (
            "my_function(currency)",
            r"my_function at character 1 cannot be called; .*domains/README.md lists the functions",
        ),
        ("currency = revers(store_id)", "revers at character 12 cannot be called; did you mean reverse?"),
        ("reflect('java.lang.System', 'getenv', 'HOME') = ''", "reflect at character 1 cannot be called"),
        ("`java_method`('java.lang.System', 'nanoTime') = ''", "java_method at character 1"),
        ("system.builtin.upper(currency) = ''", "upper at character 16 cannot be called"),
        ("currency = current_user", "current_user at character 12"),
        ("currency = CURRENT_USER ()", "current_user at character 12"),
        ("unix_timestamp() > 1", "unix_timestamp at character 1 cannot be called; did you mean to_unix_timestamp?"),
        ("raise_error(currency)", "raise_error at character 1"),
        ("identifier('upper')(currency)", "not a SQL expression|identifier at character 1"),
        ("currency = ${env:HOME}", "is a variable; there are none"),
        ("currency = :name", "is a variable; there are none"),
        ("currency -> (currency)", "has an arrow outside of a function"),
        ("upper(x -> x)", "takes no lambda"),
        ("sort_array(lines, (a, b) -> 1)", "takes no lambda"),
        ("exists(lines, (line, at) -> at > 1)", "hands over 1 values, each under a name of its own"),
        ("transform(lines, (line, line) -> 1)", "hands over 2 values, each under a name"),
        ("created_at > 'now'", "compares with another time at each start"),
        ("created_at between 'yesterday' and '2030-01-01'", "compares with another time at each start"),
        ("created_at + interval 1 day > ' Today UTC'", "compares with another time at each start"),
        ("created_at > timestamp'now'", "is another time at each start"),
        ("year(cast('now' as date)) > 1", "is another time at each start"),
        ("currency.code", "currency is no message, it has no field 'code'"),
        ("created_at.seconds", "created_at is no message"),
        ("customer_type = 'PRIME'", "CustomerType has no value 'PRIME'; did you mean CUSTOMER_TYPE_PRIME?"),
        ("customer_type in ('CUSTOMER_TYPE_PRIM')", "has no value 'CUSTOMER_TYPE_PRIM'; did you mean"),
        ("if(true, customer_type, 'PRIME')", "has no value 'PRIME'"),
        ("customer_type = delivery_type", "compares statecast.sales.v1.CustomerType with statecast.sales.v1.Deliv"),
        ("total_amount_cents = '100'", "compares integer with string"),
        ("currency > 3", "compares string with integer"),
        ("currency = null", "currency = NULL compares with null, which is never true; write `is null`"),
        ("currency not in ('EUR', null)", "compares with null"),
        ("total_amount_cents between (null) and 3", "compares with null"),
        ("created_at > '2024-13-45'", "compares with '2024-13-45', a time is as '2024-08-28"),
        ("created_at between '2024-01-01' and '2023-02-29'", "compares with '2023-02-29', a time is as '2024-08-28"),
        ("created_at > 'last week'", "compares with 'last week', a time is as '2024-08-28"),
        ("currency between 1 and 2", "compares string with integer"),
        ("lines = 'a'", "compares repeated statecast.sales.v1.InvoiceLine with string"),
        ("currency and true", "currency is of type string; a condition is true or false"),
        ("if(currency, 1, 2)", "currency is of type string; a condition is true or false"),
        ("currency + 1", "currency is of type string; only numbers"),
        ("currency = ", "is not a SQL expression, near 'currency ='"),
        ("currency = 'EUR", "is not a SQL expression"),
        ("", "is not a SQL expression"),
        ("drop table orders", "is not a SQL expression"),
        ("currency; currency", "is not a SQL expression"),
        ("date_trunc()", "is not a SQL expression: .* lacks an argument"),
        ("select 1", "reads another table"),
        ("(select max(a) from b) = 1", "reads another table"),
        ("sum(total_amount_cents) > 1", "SUM.* is an aggregate; they go into keep.aggregate"),
        ("row_number() over (order by currency)", "looks at other rows"),
        ("currency as money", "gives a name"),
        ("*", "stands for no value"),
        ("created_at < current_timestamp()", "current_timestamp at character 14 cannot be called"),
        ("rand() < 0.5", "rand at character 1 cannot be called"),
    ],
)
def test_what_is_wrong_is_told(scope: Scope, sql: str, problem: str) -> None:
    with pytest.raises(ContractError, match=problem):
        type_of(sql, scope)


def test_what_sqlglot_infers_is_what_spark_gives(scope: Scope, contract: Contract, spark: SparkSession) -> None:
    row = row_type(contract.message("statecast.sales.v1.Invoice"))
    kinds = {"tinyint": "integer", "int": "integer", "bigint": "integer", "double": "float", "boolean": "bool"}
    decimal = "cast(total_amount_cents as decimal(12, 2))"
    expressions = [
        "total_amount_cents div 100 + 1",
        "total_amount_cents / 100",
        "-total_amount_cents",
        "total_amount_cents * 2.5D",
        "total_amount_cents % 3",
        "total_amount_cents & 1",
        "year(created_at)",
        "unix_micros(created_at)",
        "floor(2.5D)",
        "ceil(total_amount_cents)",
        "length(currency)",
        "instr(currency, 'a')",
        "upper(currency)",
        "md5(currency)",
        "concat_ws('-', currency, store_id)",
        "lpad(currency, 9, '0')",
        "greatest(total_amount_cents, 1)",
        "sqrt(2)",
        "cast(currency as timestamp)",
        "date_format(created_at, 'y')",
        "startswith(currency, 'E')",
        "size(lines)",
        "round(total_amount_cents)",
        "trunc(created_at, 'MM')",
        "nullif(currency, '')",
        "abs(total_amount_cents)",
        "total_amount_cents * 2.5",
        "total_amount_cents / 2.5",
        "total_amount_cents * 1.5e3",
        *[
            sql.replace("price", decimal)
            for sql in (
                "price * total_amount_cents",
                "price / 3",
                "price % 3",
                "price div 3",
                "-price",
                "price * 2.5D",
                "abs(price)",
                "sign(price)",
                "floor(price)",
                "round(price, 1)",
                "bround(price)",
                "greatest(price, 1)",
                "coalesce(price, 0)",
                "if(true, price, 0.5)",
                "nullif(price, 0)",
                "try_divide(price, 3)",
                "try_add(price, 1)",
                "pmod(price, 3)",
                "sqrt(price)",
                "cast(price as string)",
            )
        ],
    ]
    frame = spark.createDataFrame([], row)

    for sql in expressions:
        inferred = type_of(sql, scope)
        [actual] = [field.dataType.simpleString() for field in frame.selectExpr(sql).schema]
        actual = "decimal" if actual.startswith("decimal") else actual
        assert inferred is None or str(inferred) == kinds.get(actual, actual), sql
