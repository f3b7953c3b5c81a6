"""The functions that SQL expressions may call: a change must always give the same record, and no row may end a query.

So three kinds are left out: those with results that differ from one time to the next (clocks, chance, the session,
calls into Java), those that fail on purpose (`raise_error`, `to_number`), and those that make much of little
(`sequence`). The others may fail for a row, too: RowExpressions.java then makes the expression null. It also bounds the
size of the values that they make of a row. Patterns and formats must be constants, so that a wrong one is found before
there is a row.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

import sqlglot
from sqlglot import Token, TokenType
from sqlglot.dialects.spark import Spark

from statecast_service.settings import nearest
from stream_processor.errors import ContractError

FUNCTIONS: Mapping[str, str] = {
    "types": "bigint binary boolean cast date decimal double float int smallint string timestamp tinyint try_cast",
    "choice": (
        "coalesce equal_null greatest if ifnull isnan isnotnull isnull least nanvl nullif nullifzero nvl nvl2 "
        "zeroifnull"
    ),
    "numbers": (
        "abs bit_count bround cbrt ceil ceiling conv exp floor ln log log10 log2 mod negative pmod positive pow "
        "power rint round shiftleft shiftright sign signum sqrt try_add try_divide try_multiply try_subtract"
    ),
    "text": (
        "ascii bit_length btrim char char_length character_length chr concat concat_ws contains crc32 endswith "
        "find_in_set format_number get_json_object hash hex ilike initcap instr json_array_length lcase left len "
        "length levenshtein like locate lower lpad ltrim mask md5 octet_length overlay position regexp "
        "regexp_count regexp_extract regexp_extract_all regexp_instr regexp_like regexp_replace regexp_substr "
        "repeat replace reverse right rlike rpad rtrim sha sha1 sha2 soundex split startswith substr "
        "substring substring_index translate trim ucase unhex upper xxhash64"
    ),
    "time": (
        "date_add date_diff date_format date_from_unix_date date_part date_sub date_trunc "
        "datediff datepart day dayname dayofmonth dayofweek dayofyear extract from_unixtime hour last_day "
        "make_date make_timestamp minute month monthname months_between next_day quarter second timestamp_micros "
        "timestampdiff to_date to_timestamp to_unix_timestamp "
        "trunc try_to_date try_to_timestamp unix_date unix_micros unix_millis unix_seconds weekday weekofyear "
        "year"
    ),
    "arrays": (
        "aggregate array array_append array_compact array_contains array_distinct array_except array_intersect "
        "array_join array_max array_min array_position array_prepend array_remove array_size "
        "array_union arrays_overlap arrays_zip cardinality exists filter flatten forall get named_struct reduce "
        "size sort_array struct transform zip_with"
    ),
}
"""The functions by their purpose; domains/README.md shows this."""
ALLOWED = frozenset(name for names in FUNCTIONS.values() for name in names.split())

_PATTERN_FUNCTIONS = (
    "ilike like regexp regexp_count regexp_extract regexp_extract_all regexp_instr regexp_like regexp_replace "
    "regexp_substr rlike split"
)
_FORMAT_FUNCTIONS = (
    "date_format format_number from_unixtime get_json_object to_date to_timestamp to_unix_timestamp try_to_date "
    "try_to_timestamp"
)
CONSTANTS: Mapping[str, tuple[int, ...]] = {
    **dict.fromkeys(_PATTERN_FUNCTIONS.split(), (1, 2, 3)),
    **dict.fromkeys(_FORMAT_FUNCTIONS.split(), (1,)),
    **dict.fromkeys("bround ceil ceiling floor next_day round sha2 trunc".split(), (1,)),  # noqa: SIM905  as above
    **dict.fromkeys("date_part date_trunc datepart".split(), (0,)),  # noqa: SIM905  as above
    "mask": (1, 2, 3, 4),
}
"""The arguments that must be constants, by function: patterns, formats, paths, units and digits."""
COUNTS = {"lpad": 1, "repeat": 1, "rpad": 1}
"""The arguments that are lengths and counts, and may depend on the row."""
MAX_NUMBER = 10_000
"""Bound of a number in the place of one of the CONSTANTS or COUNTS, below 0 too."""

_SYNTAX = frozenset("and between case dec div else escape from in interval is not numeric or then varchar when".split())  # noqa: SIM905  as above
"""Words that may stand before a parenthesis and call nothing."""
_NO_PARENTHESES = frozenset(Spark.parser_class.NO_PAREN_FUNCTIONS)
_MATCHING = (TokenType.LIKE, TokenType.ILIKE, TokenType.RLIKE)
_OPENING = (TokenType.L_PAREN, TokenType.L_BRACKET)
_CLOSING = (TokenType.R_PAREN, TokenType.R_BRACKET)
_LITERALS = (TokenType.NUMBER, TokenType.NULL, TokenType.TRUE, TokenType.FALSE, TokenType.DASH, TokenType.DCOLON)
_MOMENT = re.compile(r"\s*(now|today|tomorrow|yesterday)\b\s*\S*\s*", re.IGNORECASE)


_TIME = re.compile(
    r"([+-]?\d{4,6})(?:-(\d\d?)(?:-(\d\d?)(?:[ T](?:(\d\d?)(?::(\d\d?)(?::(\d\d?)(?:\.\d*)?)?)?"
    r"\s*(?:[A-Za-z+-].*)?)?)?)?)?"
)
"""Year, month, day, hour, minute and second, as Spark reads them of a text; the zone is not looked at."""


def check_calls(sql: str) -> None:
    """Raises ContractError for a call of a name that is not in ALLOWED, with its place and the nearest name that is.

    It looks at the words before parentheses, because Spark will read those: a parser of another make has its own names
    for many functions.
    """
    tokens = sqlglot.tokenize(sql, dialect="spark")
    for before, token, after in zip([None, *tokens], tokens, [*tokens[1:], None], strict=False):
        called = after is not None and after.token_type == TokenType.L_PAREN and _is_word(token, sql)
        if token.token_type in _NO_PARENTHESES or (called and not _may_call(before, token)):
            name = token.text.lower()
            match = nearest(name, ALLOWED)
            hint = f"did you mean {match}? " if match else ""
            place = f"{name} at character {token.start + 1}"
            raise ContractError(f"{place} cannot be called; {hint}domains/README.md lists the functions")


def check_constants(sql: str) -> None:
    """Raises ContractError for an argument that must be a constant and is none, or is a number beyond MAX_NUMBER."""
    tokens = sqlglot.tokenize(sql, dialect="spark")
    for at, token in enumerate(tokens):
        name = token.text.lower()
        following = tokens[at + 1 :]
        called = following and following[0].token_type == TokenType.L_PAREN and _is_word(token, sql)
        arguments = list(_arguments(following)) if called else []
        if token.token_type in _MATCHING and len(arguments) < 2:
            for pattern in _patterns(following):
                _check_constant(name, pattern)
            continue
        for number in CONSTANTS.get(name, ()) if called else ():
            _check_constant(name, arguments[number] if number < len(arguments) else [])
        count = COUNTS.get(name, len(arguments))
        _check_number(name, arguments[count] if count < len(arguments) else [])


def _patterns(following: Sequence[Token]) -> Iterator[Sequence[Token]]:
    """Yields the constants that must stand behind the word `like`: one, or those in the parentheses of `any (…)`."""
    if following and following[0].text.lower() in ("any", "all", "some"):
        yield from _arguments(following[1:])
    else:
        joined = len(following) > 1 and following[1].token_type == TokenType.DPIPE
        yield following[: 2 if joined else 1]


def _arguments(following: Sequence[Token]) -> Iterator[Sequence[Token]]:
    """Yields the tokens of each argument between the parentheses at the start of `following`."""
    depth, start = 0, 1
    for at, token in enumerate(following):
        depth += (token.token_type in _OPENING) - (token.token_type in _CLOSING)
        if depth == 0 or (depth == 1 and token.token_type == TokenType.COMMA):
            yield following[start:at]
            start = at + 1
        if depth == 0:
            return


def _check_constant(name: str, argument: Sequence[Token]) -> None:
    for before, token in zip([None, *argument], argument, strict=False):
        of_type = before is not None and before.token_type == TokenType.DCOLON  # as in 10L, which is 10::bigint
        if not (token.token_type in _LITERALS or token.token_type.name.endswith("STRING") or of_type):
            place = f"{token.text!r} at character {token.start + 1}"
            raise ContractError(
                f"{place} is not a constant; {name} takes its patterns, formats and digits as constants"
            )
    _check_number(name, argument)


def _check_number(name: str, argument: Sequence[Token]) -> None:
    for token in argument if len(argument) <= len(("-", "1", "::", "bigint")) else ():
        if token.token_type == TokenType.NUMBER and float(token.text) > MAX_NUMBER:
            place = f"{token.text} at character {token.start + 1}"
            raise ContractError(f"{place} is too large; {name} takes numbers up to {MAX_NUMBER:,}")


def _is_word(token: Token, sql: str) -> bool:
    return token.token_type == TokenType.IDENTIFIER or sql[token.start].isalpha() or sql[token.start] == "_"


def _may_call(before: Token | None, token: Token) -> bool:
    """Returns whether the name may stand there: behind a dot it is of another schema; `like any (…)` is no call."""
    name, preceding = token.text.lower(), "" if before is None else before.text.lower()
    if token.token_type == TokenType.IDENTIFIER or preceding == ".":
        return name in ALLOWED and preceding != "."
    return name in ALLOWED | _SYNTAX or (name in ("any", "all", "some") and preceding in ("like", "ilike"))


def is_moment(text: str) -> bool:
    """Returns whether Spark takes this text for another time at each start, where it needs a time."""
    return _MOMENT.fullmatch(text) is not None


def is_time(text: str) -> bool:
    """Returns whether Spark can take the text for a time; of any other it makes null."""
    match = _TIME.fullmatch(text.strip())
    if match is None:
        return text.strip().lower() == "epoch"
    year, month, day, hour, minute, second = (None if each is None else int(each) for each in match.groups())
    try:
        datetime((year or 0) % 400 + 400, month or 1, day or 1, hour or 0, minute or 0, second or 0)  # noqa: DTZ001
    except ValueError:
        return False
    return True
