"""No value of any row ends a query: each function that may be called, on hostile values in each of its arguments."""

import re
from datetime import UTC, date, datetime
from decimal import Decimal

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark program uses

from stream_processor.pipeline.sql_functions import ALLOWED, CONSTANTS, check_calls, check_constants
from stream_processor.spark_internals import attempt, attempted, exact

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

LONG = "(a\\%$1é😀" * 12_000
MAX_INT, MAX_LONG = 2**31 - 1, 2**63 - 1
TEXTS: list[object] = [
    "(",
    None,
    "",
    "\\",
    "%",
    "$9",
    "\0",
    "\ufffd😀",
    LONG,
    "9" * 400,
    "-1.5e309",
    "0001-01-01",
    "+294247-01-10",
]
TEXTS += ["[" * 30_000, '{"a":' * 3_000, "yyyy-QQQ", "ff0", "a" * 100_000, "Infinity", "1970-02-30 25:61:61+99:99"]
FIRST, LAST = datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)
NINES = Decimal("9" * 29 + "." + "9" * 9)
VALUES: dict[str, tuple[str, list[object]]] = {
    "t": ("string", TEXTS),
    "i": ("int", [None, 0, 1, -1, 37, 40_000, MAX_INT, -(2**31)]),
    "l": ("bigint", [None, 0, 1, -1, 40_000, MAX_INT, MAX_LONG, -(2**63), 253_402_300_800_000_000]),
    "d": ("double", [None, 0.0, -0.0, 1.5, -1e308, 1e308, float("nan"), float("inf"), float("-inf"), 5e-324]),
    "m": ("decimal(38,9)", [None, Decimal(0), NINES, NINES.copy_negate(), Decimal(1)]),
    "s": ("timestamp", [None, FIRST, LAST, datetime(1970, 1, 1, tzinfo=UTC)]),
    "e": ("date", [None, date(1, 1, 1), date(9999, 12, 31), date(1970, 1, 1), date(2024, 2, 29)]),
    "b": ("boolean", [None, True, False]),
    "y": ("binary", [None, b"", b"\xff\xfe\x00", b"\xed\xa0\x80" * 30_000]),
    "a": ("array<string>", [None, [], [None], ["", None, "(", "a" * 100_000], ["x"] * 5_000]),
    "n": ("array<bigint>", [None, [], [None], [MAX_LONG, -(2**63), None, 0], list(range(5_000))]),
}
"""The type of the columns, and hostile values, by the letter that the calls below use."""
ROWS = 80
CALLS = """
bigint(t) bigint(d) bigint(m) bigint(s) binary(t) boolean(t) boolean(d) date(t) decimal(t) decimal(d) double(t)
double(m) float(t) float(d) int(t) int(d) int(m) int(s) smallint(d) string(d) string(a) string(y) string(s)
timestamp(t) timestamp(l) timestamp(d) timestamp(m) tinyint(l) cast(t~as~timestamp) cast(d~as~decimal(38,38))
cast(l~as~timestamp) cast(m~as~decimal(3,1)) cast(a~as~string) cast(t~as~date)
try_cast(t~as~int) try_cast(d~as~timestamp)
coalesce(t,t) equal_null(d,d) greatest(t,t) greatest(d,d) if(b,t,t) ifnull(t,t) isnan(d) isnotnull(t) isnull(t)
least(d,d) nanvl(d,d) nullif(t,t) nullifzero(l) nvl(t,t) nvl2(t,t,t) zeroifnull(l)
abs(i) abs(l) abs(m) abs(d) bit_count(l) bround(d,'2') bround(m,2) cbrt(d) ceil(d) ceil(m,2) ceil(d,-400) ceiling(d)
ceiling(m,-9) conv(t,i,i) exp(d) floor(d) floor(m,2) floor(d,400) ln(d) log(d,d) log10(d) log2(d) mod(l,l) mod(m,m)
mod(d,d) negative(i) negative(l) negative(m) pmod(l,l) pmod(m,m) positive(d) pow(d,d) power(m,m) rint(d) round(d,10000)
round(m,2) round(l,-10000) round(i,-9) shiftleft(l,i) shiftright(l,i) sign(d) signum(m) sqrt(d) try_add(l,l)
try_add(e,i) try_divide(m,m) try_multiply(l,l) try_multiply(m,m) try_subtract(l,l)
ascii(t) bit_length(t) btrim(t,t) char(l) char_length(t) character_length(y) chr(l) concat(t,t,t) concat(a,a)
concat_ws(t,a,t) contains(t,t) crc32(y) endswith(t,t) find_in_set(t,t) format_number(d,10000) format_number(m,9)
format_number(l,'#,###.##') format_number(d,-1) get_json_object(t,'$.a.a.a') get_json_object(t,'$[*].b') hash(t,a,d)
hex(t) hex(l) hex(y) ilike(t,'%(') initcap(t) instr(t,t) json_array_length(t) lcase(t) left(t,i) len(t) length(y)
levenshtein(t,t) levenshtein(t,t,i) like(t,'%\\\\_(%') locate(t,t,i) lower(t) lpad(t,i,t) lpad(y,i,y) ltrim(t,t)
mask(t) mask(t,'X','x','0','-') md5(y) octet_length(t) overlay(t,t,i,i) overlay(y,y,i,i) position(t,t,i)
regexp(t,'^[a(]*$') regexp_count(t,'a+') regexp_extract(t,'(a|b)[^a]',1) regexp_extract(t,'a(b)?',9)
regexp_extract_all(t,'(a)|.',1) regexp_extract_all(t,'a',-1) regexp_instr(t,'[ab]+$') regexp_instr(t,'a',7)
regexp_like(t,'^[ab(]*x') regexp_replace(t,'','$0$0') regexp_replace(t,'a|(b)','-',2) regexp_substr(t,'[a(]*')
repeat(t,i) repeat(repeat(t,i),i) replace(t,t,t) replace(t,t) reverse(t) reverse(a) right(t,i) rlike(t,'^a?$')
rpad(t,i,t) rtrim(t,t) sha(y) sha1(t) sha2(t,7) sha2(y,512) soundex(t) split(t,'') split(t,'a|(?=b)',-1) startswith(t,t)
substr(t,i,i) substring(t,i,i) substring(y,i,i) substring_index(t,t,i) translate(t,t,t) trim(t) trim(both~t~from~t)
ucase(t) unhex(t) upper(t) xxhash64(t,m,n)
date_add(e,i) date_add(t,i) date_diff(e,e) date_format(s,'yyyy-MM-dd') date_format(t,'y~G') date_from_unix_date(i)
date_part('week',s) date_part('seconds',s) date_sub(e,i) date_trunc('WEEK',s) date_trunc('microsecond',t)
datediff(e,e) datepart('yearofweek',e) day(e) dayname(e) dayofmonth(t) dayofweek(e) dayofyear(e) extract(year~from~e)
from_unixtime(l) from_unixtime(l,'yyyy') hour(s) last_day(e) make_date(i,i,i) make_timestamp(i,i,i,i,i,m)
make_timestamp(i,i,i,i,i,d,t) minute(s) month(e) monthname(e) months_between(s,s) months_between(s,s,b)
next_day(e,'MON') quarter(e) second(s) timestamp_micros(l) timestampdiff(month,s,s) to_date(t) to_date(t,'yyyy-MM-dd')
to_timestamp(t) to_timestamp(t,'yyyy-MM-dd~HH:mm:ss') to_unix_timestamp(s) to_unix_timestamp(t,'yyyy') trunc(e,'MM')
try_to_date(t,'yyyy') try_to_timestamp(t,'yyyy') unix_date(e) unix_micros(s) unix_millis(s) unix_seconds(s) weekday(e)
weekofyear(e) year(e) unix_date(date_from_unix_date(i)) date_format(timestamp_micros(l),'yyyy')
date_add(date_add(e,i),i)
aggregate(n,0L,(x,z)->x+z) aggregate(a,t,(x,z)->concat(x,x)) array(t,t) array_append(a,t) array_compact(a)
array_contains(a,t) array_distinct(a) array_except(a,a) array_intersect(a,a) array_join(a,t,t) array_max(n) array_min(a)
array_position(a,t) array_prepend(n,l) array_remove(a,t) array_size(a) array_union(a,a) arrays_overlap(n,n)
arrays_zip(a,n) cardinality(a) exists(a,x->x=t) filter(a,x->length(x)>i) flatten(array(a,a))
flatten(transform(a,x->a)) forall(n,x->x>l) get(a,i) named_struct('a',t,'b',n) reduce(n,0D,(x,z)->x/z) size(a)
sort_array(a,true) struct(t,l) transform(a,x->repeat(x,i)) transform(a,x->t) zip_with(a,n,(x,z)->concat(x,z))
"""
OPERATORS = """
t||t t~like~'(%' t~rlike~'a*' t=t a[i] i+i l+l l-l l*l m*m m+m m/m m%m d/d l/l l~div~l l%l -i -l i&i i|i i^i t=l
s=t e=t t~between~t~and~t t~in(t,t) case~when~b~then~t~else~t~end s>t d=t b=t m=d t+l
s+interval~9~years e+interval~9~years
"""
"""Expressions without a call: operators, and forms with words of their own."""


def sql_of(call: str) -> str:
    """Returns the SQL of a call with letters for columns: the first `t` is `t1`, the second `t2`; `~` is a space."""
    counts = dict.fromkeys(VALUES, 0)

    def column(letter: re.Match[str]) -> str:
        counts[letter[0]] = counts[letter[0]] % 3 + 1
        return f"{letter[0]}{counts[letter[0]]}"

    name = re.compile(rf"(?<![\w.])[{''.join(VALUES)}](?!\w)")
    texts_apart = re.split("('[^']*')", call.replace("~", " "))
    return "".join(each if at % 2 else name.sub(column, each) for at, each in enumerate(texts_apart))


def hostile_rows(spark: SparkSession) -> DataFrame:
    """Returns rows in which each column has each of its values, in changing company: `t1` to `t3` and so on."""
    columns = [(letter, number) for letter in VALUES for number in (1, 2, 3)]
    schema = ", ".join(f"{letter}{number} {VALUES[letter][0]}" for letter, number in columns)

    def value(letter: str, number: int, row: int) -> object:
        values = VALUES[letter][1]
        return values[(row, row * 7 + row // len(values), row * 3 + row // 7)[number - 1] % len(values)]

    return spark.createDataFrame(
        [tuple(value(*each, row) for each in columns) for row in range(ROWS)], schema
    ).repartition(2)


def test_no_value_in_any_argument_ends_a_query(spark: SparkSession) -> None:
    calls = [sql_of(each) for each in (*CALLS.split(), *OPERATORS.split())]
    for sql in calls:
        check_calls(sql)
        check_constants(sql)

    # Each is computed, and has no error: the hashes are of no interest.
    hashes = [F.hash(exact(attempt(sql), spark)) for sql in calls]
    hostile_rows(spark).select(*hashes).write.format("noop").mode("overwrite").save()


def test_each_function_is_tried_with_the_row_in_each_argument_that_is_no_constant() -> None:
    called = {name for each in CALLS.split() for name in re.findall(r"(\w+)\(", each)}
    constants = {
        (name, at)
        for name, arguments in re.findall(r"(\w+)\(([^()]*)\)", CALLS)
        for at, argument in enumerate(arguments.split(","))
        if re.fullmatch(r"'.*'|-?\d+", argument)
    }

    assert called >= ALLOWED
    # The names of a struct's fields are names, and the digits of a decimal are its type.
    assert {each for each in constants if each[1] not in CONSTANTS.get(each[0], ())} <= {
        ("named_struct", 0),
        ("named_struct", 2),
        ("decimal", 0),
        ("decimal", 1),
    }


TOO_MUCH = (
    "repeat(town, n)",
    "repeat(repeat(town, 9000), 9000)",
    "lpad(town, n, '-')",
    "replace(repeat(town, 9000), 'a', repeat(town, 9000))",
    "regexp_replace(repeat(town, 9000000), '', '0123456789')",
    "concat_ws(repeat(town, 9000), split(repeat(town, 9000), ''))",
    "array_join(transform(split(repeat(town, 9000), ''), x -> repeat(town, 9000)), ',')",
    "aggregate(split(repeat(town, 50), ''), town, (x, z) -> concat(x, x))",
    "aggregate(split(repeat(town, 50), ''), town, (x, z) -> x || x)",
    "size(aggregate(split(repeat(town, 50), ''), array(town), (x, z) -> concat(x, x)))",
    "transform(split(repeat(town, 9000), ''), x -> repeat(town, 9000))",
    "flatten(transform(split(repeat(town, 9000), ''), x -> split(repeat(town, 9000), '')))",
    "cast(transform(split(repeat(town, 9000), ''), x -> big) as string)",
    "transform(split(repeat(town, 9000), ''), x -> big)",
    "levenshtein(repeat(town, 9000), big)",
    "regexp_like(big, '(a|b)*x')",
)


def test_what_would_be_too_much_is_null(spark: SparkSession) -> None:
    row = spark.createDataFrame([("a", MAX_INT, "a" * 50_000)], "town string, n int, big string")

    [nulls] = row.select(*[exact(attempt(sql), spark).isNull() for sql in TOO_MUCH]).collect()

    assert [sql for sql, is_null in zip(TOO_MUCH, nulls, strict=True) if not is_null] == []


TOO_LONG = (
    "array_distinct(structs)",
    "array_distinct(bytes)",
    "arrays_overlap(structs, transform(structs, x -> named_struct('x', concat(x.x, '-'))))",
    "array_except(structs, structs)",
    "array_union(structs, structs)",
    "array_intersect(bytes, bytes)",
    "instr(repeat(text, 9), concat(repeat(text, 9), '-'))",
    "locate(concat(repeat(text, 9), '-'), repeat(text, 9))",
    "position(concat(repeat(text, 9), '-'), repeat(text, 9))",
    "contains(repeat(text, 9), concat(repeat(text, 9), '-'))",
    "contains(binary(repeat(text, 9)), binary(concat(repeat(text, 4), '-')))",
    "trim(both concat(repeat('-', 250000), 'a') from repeat(text, 9))",
    "trim(leading concat(repeat('-', 250000), 'a') from repeat(text, 9))",
    "rtrim(concat(repeat('-', 250000), 'a'), repeat(text, 9))",
    "decimal(replace(repeat(text, 36), 'a', '9'))",
    "replace(repeat(text, 9), concat(repeat(text, 9), '-'), '')",
    "substring_index(repeat(text, 9), concat(repeat(text, 9), '-'), -1)",
    "initcap(repeat('a ', 100) || repeat(text, 9))",
    "text like any ('b%', '%a%a%a%b')",
    "text like all ('a%', '%a%a%a%b')",
    "filter(words, x -> array_contains(words, concat(x, '-')))",
    "filter(words, x -> instr(text, concat(x, '-')) > 0)",
    "filter(words, x -> length(text) = 3)",
    "filter(words, x -> text like '%b')",
    "filter(words, x -> text rlike 'a+$')",
)


def test_what_would_take_minutes_is_null(spark: SparkSession) -> None:
    words = [f"{number:x}" for number in range(20_000)]
    values = ("a" * 250_000, words, [(each,) for each in words], [each.encode() for each in words])
    schema = "text string, words array<string>, structs array<struct<x:string>>, bytes array<binary>"
    row = spark.createDataFrame([values], schema).repartition(1)
    sound = {
        "size(array_distinct(words))": 20_000,
        "size(array_distinct(array(structs[0], structs[1], structs[0])))": 2,
        "instr(text, 'b')": 0,
        "trim(concat(text, ' ')) = trim(both '-' from text)": True,
        "contains(binary(text), binary('b'))": False,
        "length(replace(text, 'aa', 'b'))": 125_000,
        "size(filter(words, x -> length(x) = 1))": 16,
        "size(filter(words, x -> x like '%f'))": 1_250,
        "size(transform(words, x -> initcap(x)))": 20_000,
    }

    [values] = row.select(*[exact(attempt(sql), spark) for sql in (*TOO_LONG, *sound)]).collect()

    too_long = dict(zip(TOO_LONG, values, strict=False))
    assert [sql for sql, value in too_long.items() if value is not None] == []
    assert dict(zip(sound, values[len(TOO_LONG) :], strict=True)) == sound


def test_a_number_that_its_type_cannot_hold_is_null(spark: SparkSession) -> None:
    row = spark.createDataFrame(
        [(2**32 + 7, -(2**63), float("nan"), float("inf"), 1e30, Decimal(2**40), "1.5")],
        "long bigint, least bigint, nan double, inf double, big double, dec decimal(20,0), text string",
    )
    casts = [f"cast({each} as bigint)" for each in ("nan", "inf", "-inf", "big", "text")]
    casts += [f"{name}(long)" for name in ("int", "smallint", "tinyint")] + ["bigint(big)", "int(dec)", "long::int"]
    rounded = [f"{name}({each})" for name in ("floor", "ceil", "ceiling") for each in ("nan", "-inf", "big")]
    too_large = [*casts, *rounded, "cast(big as float)::bigint", "abs(least)", "-least", "negative(least)"]
    fitting = {
        "int(long - long + 7)": 7,
        "bigint(-1.9D)": -1,
        "floor(-1.5D)": -2,
        "ceil(long)": 2**32 + 7,
        "floor(cast(least as double))": -(2**63),
        "floor(2.75, 1)": Decimal("2.7"),
        "abs(-long)": 2**32 + 7,
        "negative(dec)": -Decimal(2**40),
        "int(true)": 1,
    }

    [values] = row.select(*[exact(attempt(sql), spark) for sql in (*too_large, *fitting)]).collect()

    assert {sql: value for sql, value in zip(too_large, values, strict=False) if value is not None} == {}
    assert dict(zip(fitting, values[len(too_large) :], strict=True)) == fitting


def test_a_pattern_that_recurses_too_deeply_in_a_key_matches_nothing(spark: SparkSession) -> None:
    keys = spark.createDataFrame([("a" * 100_000,), ("ax",)], "key string").repartition(1)

    matches = keys.select("key", attempted(F.rlike("key", F.lit("^(a|b)*x")), spark).alias("matches")).collect()

    assert {len(each.key): each.matches for each in matches} == {100_000: None, 2: True}


def test_an_expression_in_two_places_fails_in_neither(spark: SparkSession) -> None:
    """Spark computes an expression that stands in two places once, ahead of both: that must be within the attempts."""
    rows = spark.createDataFrame([("a(b", 7)], "town string, n int")
    fails = "regexp_extract(town, 'a', n)"
    calls = [f"{each}({fails})" for each in ("upper", "lower", "length", "initcap")]
    calls += [f"nullif({fails}, '')", f"nullifzero(length({fails}))", f"{fails} between 'a' and 'b'"]

    [row] = rows.select(*[exact(attempt(each), spark) for each in calls]).collect()

    assert row == (None,) * len(calls)


@pytest.mark.parametrize(
    ("sql", "problem"),
    [
        ("regexp_replace(town, '(', '')", r"'\(' in regexp_replace: Unclosed group"),
        ("regexp_replace(town, '(a)', '$2')", r"'\(a\)' in regexp_replace: No group 2"),
        ("town rlike '[a'", r"'\[a' in rlike: Unclosed character class"),
        ("split(town, '*')[0]", r"'\*' in split: Dangling meta character"),
    ],
)
def test_a_constant_that_is_no_pattern_is_refused(spark: SparkSession, sql: str, problem: str) -> None:
    with pytest.raises(AnalysisException, match=problem):
        exact(attempt(sql), spark)
