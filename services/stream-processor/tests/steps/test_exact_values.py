"""No expression makes another number or time of a value that its type cannot hold: it is exact, or null."""

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import product
from math import ceil, floor, isfinite
from typing import Any, cast

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import BooleanType, DataType, IntegerType

from stream_processor.pipeline.sql_functions import check_calls, check_constants
from stream_processor.spark_internals import attempt, exact

pytestmark = pytest.mark.timeout(300)

MAX_INT, MAX_LONG = 2**31 - 1, 2**63 - 1
LONGS = [0, 1, -1, 3, -7, 2**31, 2**32 + 1, 2**32 + 2, -(2**32) + 2, MAX_LONG, -MAX_LONG, -(2**63), 9_223_372_036_855]
INTS = [0, 1, -3, 12, 31, MAX_INT, -MAX_INT, -(2**31)]
DOUBLES = [0.0, 1.5, -2.5, 1e18, -(2.0**63), 2.0**63, 1e30, -1e300, float("nan"), float("inf")]
NUMBERS = [Decimal(0), Decimal("2.5"), Decimal("-0.5"), Decimal("1e27"), Decimal("-1e27"), Decimal(9223372036855)]
TEXTS = ["7", "-7.5", "1e30", "99999999999999999999", "zz"]
COLUMNS: dict[str, tuple[str, list[object]]] = {
    "h": ("bigint", [*LONGS]),
    "k": ("bigint", [*LONGS]),
    "i": ("int", [*INTS]),
    "j": ("int", [*INTS]),
    "d": ("double", [*DOUBLES]),
    "m": ("decimal(38,9)", [*NUMBERS]),
    "n": ("decimal(38,9)", [*NUMBERS]),
    "t": ("string", [*TEXTS]),
}
"""The type and the values of each column. An expression is tried with all combinations of its columns' values."""


def quotient(one: int | Decimal, other: int | Decimal) -> int | None:
    """Returns the whole part of the quotient."""
    return None if other == 0 else int(Fraction(one) / Fraction(other))


def positive_remainder(one: int, other: int) -> int | None:
    """Returns Spark's `pmod`: the remainder, plus the divisor if it is below 0."""
    if other == 0:
        return None
    remainder = abs(one) % abs(other) * (1 if one >= 0 else -1)
    moved = remainder + other
    return remainder if remainder >= 0 else abs(moved) % abs(other) * (1 if moved >= 0 else -1)


def rounded(digits: int, half_even: bool = False) -> Callable[[int], int]:
    """Returns a function that rounds a whole number to so many digits before the point."""

    def round_number(number: int) -> int:
        with localcontext(prec=60):
            how = "ROUND_HALF_EVEN" if half_even else "ROUND_HALF_UP"
            return int(Decimal(number).quantize(Decimal(1).scaleb(digits), how))

    return round_number


def whole(make: Callable[[float], int]) -> Callable[[float], int | None]:
    """Returns `make` for finite numbers, null for others."""
    return lambda number: make(number) if isfinite(number) else None


def number_in(text: str) -> float | None:
    """Returns the number that the text is; null if it is none."""
    try:
        return float(text)
    except ValueError:
        return None


def micros(seconds: float | Decimal) -> int | None:
    """Returns the whole microseconds of so many seconds."""
    return int(Fraction(seconds) * 10**6) if isfinite(seconds) else None


def in_base(number: int, base: int) -> str:
    """Returns the number in another base, in capital letters."""
    digits = "0123456789ABCDEF"
    return digits[number] if number < base else in_base(number // base, base) + digits[number % base]


def year_of(seconds: int) -> str | None:
    """Returns the year of a moment, where Python has it."""
    return str(datetime.fromtimestamp(seconds, UTC).year) if abs(seconds) < 2**35 else None


def overlaid(before: int, replaced: int) -> int:
    """Returns the length of six characters with one in the place of some."""
    return min(before, 6) + 1 + max(6 - before - replaced, 0)


MODELS: dict[str, Callable[..., object]] = {  # the columns are the arguments, in their order
    "h div k": quotient,
    "i div j": quotient,
    "m div n": quotient,
    "m div h": lambda h, m: quotient(m, h),
    "m div 0.000001": lambda m: quotient(m, Decimal("0.000001")),
    "h % k": lambda h, k: None if k == 0 else abs(h) % abs(k) * (1 if h >= 0 else -1),
    "pmod(h, k)": positive_remainder,
    "pmod(i, j)": positive_remainder,
    "h + k": lambda h, k: h + k,
    "i * j": lambda i, j: i * j,
    "-i": lambda i: -i,
    "-h": lambda h: -h,
    "abs(h)": abs,
    "abs(i - 0)": abs,
    "round(h, -1)": rounded(1),
    "round(h, -18)": rounded(18),
    "round(i, -1)": rounded(1),
    "bround(h, -1)": rounded(1, half_even=True),
    "bround(i, -9)": rounded(9, half_even=True),
    "floor(d)": whole(floor),
    "ceil(d)": whole(ceil),
    "floor(m)": floor,
    "floor(t)": lambda t: None if (number := number_in(t)) is None else floor(number),
    "ceiling(t)": lambda t: None if (number := number_in(t)) is None else ceil(number),
    "cast(d as bigint)": whole(int),
    "cast(d as int)": whole(int),
    "cast(m as int)": int,
    "cast(h as int)": int,
    "cast(array(h) as array<int>)[0]": int,
    "transform(array(h), x -> int(x))[0]": int,
    "unix_micros(cast(h as timestamp))": micros,
    "unix_micros(timestamp(h))": micros,
    "unix_micros(cast(d as timestamp))": micros,
    "unix_micros(cast(m as timestamp))": micros,
    "unix_micros(cast(array(h, m) as array<timestamp>)[1])": lambda h, m: micros(m),
    "unix_micros(cast(array(d) as array<timestamp>)[0])": micros,
    "unix_micros(cast(named_struct('x', array(d)) as struct<x: array<timestamp>>).x[0])": micros,
    "cast(array(d) as array<bigint>)[0]": whole(int),
    "cast(array(named_struct('x', d)) as array<struct<x: int>>)[0].x": whole(int),
    "unix_micros(timestamp_micros(h))": int,
    "unix_micros(try_cast(h as timestamp))": micros,
    "from_unixtime(h, 'yyyy')": year_of,
    "unix_date(date_add(date'1970-01-02', i))": lambda i: 1 + i,
    "unix_date(date_sub(date'1969-12-30', i))": lambda i: -2 - i,
    "unix_date(date'1970-01-02' + i)": lambda i: 1 + i,
    "unix_date(date'1969-12-30' - i)": lambda i: -2 - i,
    "unix_date(try_add(date'1970-01-02', i))": lambda i: 1 + i,
    "unix_date(date_from_unix_date(h))": int,
    "datediff(date_from_unix_date(i), date_from_unix_date(j))": lambda i, j: i - j,
    "date_diff(date_from_unix_date(i), date_from_unix_date(j))": lambda i, j: i - j,
    "unix_date(next_day(date_from_unix_date(i), 'THU'))": lambda i: i + 7 - i % 7,
    "weekday(date_from_unix_date(i))": lambda i: (i + 3) % 7,
    "dayofweek(date_from_unix_date(i))": lambda i: (i + 4) % 7 + 1,
    "year(make_date(h, 1, 1))": int,
    "year(make_date(2020, h, 1))": lambda h: 2020 if 1 <= h <= 12 else None,
    "array(0, 1, 2, 3)[h]": lambda h: h if 0 <= h <= 3 else None,
    "get(array(0, 1, 2, 3), h)": lambda h: h if 0 <= h <= 3 else None,
    "length(repeat('a', h))": lambda h: max(h, 0),
    "length(left('abcdef', h))": lambda h: min(max(h, 0), 6),
    "length(right('abcdef', h))": lambda h: min(max(h, 0), 6),
    "length(substring('abcdef', 1, h))": lambda h: min(max(h, 0), 6),
    "length(substring('abcdef', h))": lambda h: 7 - h if 1 <= h <= 6 else min(-h, 6) if h < 0 else 6 if h == 0 else 0,
    "length(lpad('a', h, 'b'))": lambda h: max(h, 0),
    "length(overlay('abcdef', 'x', greatest(i, 1), greatest(j, 0)))": lambda i, j: overlaid(max(i, 1) - 1, max(j, 0)),
    "length(substring_index('a.b', '.', i))": lambda i: 0 if i == 0 else 1 if i in (1, -1) else 3,
    "locate('c', 'abcdef', h)": lambda h: 3 if 1 <= h <= 3 else 0,
    "cast(h * 1BD as decimal(5, 0))": Decimal,
    "aggregate(array(h, k), 0L, (sum, each) -> sum + each)": lambda h, k: h + k,
    "try_divide(h, k)": lambda h, k: None if k == 0 else h / k,
    "size(split(t, ','))": lambda _: 1,
    "unix_seconds(timestamp_micros(h))": lambda h: h // 10**6,
    "unix_millis(timestamp_micros(h))": lambda h: h // 10**3,
    "timestampdiff(second, timestamp_micros(h), timestamp_micros(k))": lambda h, k: int(Fraction(k - h, 10**6)),
    "cast(date_from_unix_date(i) as timestamp) = timestamp_micros(0)": lambda i: i == 0,
    "unix_date(cast(timestamp_micros(h) as date))": lambda h: h // (86_400 * 10**6),
    "unix_date(last_day(date_from_unix_date(i))) >= i": lambda _: True,
}


MAY_BE_NULL = ("as decimal(5", "as timestamp) =", "conv(", "from_unixtime(", "last_day(", "overlay(")
"""Parts of expressions whose types hold less than those of integers."""


def combinations(sql: str) -> Iterator[dict[str, Any]]:
    """Yields all combinations of the values of the expression's columns, by their names."""
    names = [name for name in COLUMNS if re.search(rf"(?<![\w'.]){name}(?![\w'.])", sql)]
    for values in product(*(COLUMNS[name][1] for name in names)):
        yield dict(zip(names, values, strict=True))


def is_held(sql: str, of_type: DataType, result: object, columns: Mapping[str, object]) -> bool:
    """Returns whether the result's type holds the result, and where a function takes an int, this the argument."""
    bounds = MAX_INT if isinstance(of_type, IntegerType) else MAX_LONG
    if any(part in sql for part in MAY_BE_NULL):
        return False
    of_ints = isinstance(of_type, IntegerType | BooleanType)
    arguments = [value for value in columns.values() if of_ints and isinstance(value, int)]
    return all(-bounds <= value <= bounds for value in (cast(float, result), *arguments))


def test_a_result_is_exact_or_null(spark: SparkSession) -> None:
    for sql in MODELS:
        check_calls(sql)
        check_constants(sql)
    schema = "number int, " + ", ".join(f"{name} {of_type}" for name, (of_type, _) in COLUMNS.items())
    cases = {repr(columns): columns for sql in MODELS for columns in combinations(sql)}
    rows = [(number, *map(columns.get, COLUMNS)) for number, columns in enumerate(cases.values())]
    computed = spark.createDataFrame(rows, schema).select(
        "number", *[exact(attempt(sql), spark).alias(f"c{at}") for at, sql in enumerate(MODELS)]
    )
    results = {line.number: line for line in computed.collect()}
    numbers = {columns: number for number, columns in enumerate(cases)}

    wrong = []
    for at, (sql, model) in enumerate(MODELS.items()):
        of_type = computed.schema[f"c{at}"].dataType
        for columns in combinations(sql):
            result, expected = results[numbers[repr(columns)]][f"c{at}"], model(*columns.values())
            lost = result is None and expected is not None and is_held(sql, of_type, expected, columns)
            if lost or (result is not None and result != expected):
                wrong.append((sql, columns, result, expected))
    assert wrong == []


@pytest.mark.parametrize("function", ["size", "cardinality"])
def test_the_size_of_a_list_that_is_null_is_null(spark: SparkSession, function: str) -> None:
    lists = spark.createDataFrame([(["a"],), ([],), (None,)], "names array<string>").coalesce(1)

    sizes = lists.select(exact(attempt(f"{function}(names)"), spark).alias("size")).collect()

    assert [row.size for row in sizes] == [1, 0, None]


ENDLESS = (
    r"regexp_replace(town, '(a|aa)+\\1b', '')",
    r"regexp_like(town, '^(a|aa)+\\1$')",
    r"regexp_extract(town, '(a+)+\\1b', 1)",
    r"regexp_extract_all(town, '(a+)+\\1b', 1)",
    r"regexp_count(town, '(a|a)*\\1c')",
    r"regexp_instr(town, '(a+)+\\1b')",
    r"regexp_substr(town, '(a+)+\\1b')",
    r"split(town, '(a+)+\\1b')",
    r"town rlike '(a+)+\\1b'",
    "town like '%a%a%a%a%a%a%a%b%a'",
    "town ilike '%A%A%A%A%A%A%A%b%A'",
    "town like any ('%a%a%a%a%a%a%a%b%a', '%a%a%a%a%a%a%a%b%b')",
)


def test_a_pattern_that_would_match_for_hours_gives_null(spark: SparkSession) -> None:
    row = spark.createDataFrame([("a" * 300 + "!",)], "town string").repartition(1)

    [nulls] = row.select(*[exact(attempt(sql), spark).isNull() for sql in ENDLESS]).collect()

    assert [sql for sql, is_null in zip(ENDLESS, nulls, strict=True) if not is_null] == []


def test_a_sound_pattern_matches_a_large_text(spark: SparkSession) -> None:
    row = spark.createDataFrame([("ab " * 300_000,)], "town string").repartition(1)
    sound = {
        "length(regexp_replace(town, '[ab]+', 'c'))": 600_000,
        "size(split(town, ' +'))": 300_001,
        "town like '%b%a%'": True,
        "town like '%b%a %'": None,  # each b would be followed by a search for the a
        "town rlike 'b a.*b $'": True,
    }

    [values] = row.select(*[exact(attempt(sql), spark) for sql in sound]).collect()

    assert dict(zip(sound, values, strict=True)) == sound
