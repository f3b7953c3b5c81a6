"""The functions that SQL expressions may call: a change must always give the same record, and no row may end a query.

So what differs from one time to the next is left out (clocks, chance, the session, calls into Java), what fails for
some values (`raise_error`, `to_number`, `map`, `timestamp_seconds`), and what makes much of little (`sequence`).
"""

import re
from collections.abc import Mapping

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
"""By what they are for; domains/README.md shows this."""
ALLOWED = frozenset(name for names in FUNCTIONS.values() for name in names.split())

_SYNTAX = frozenset("and between case dec div else escape from in interval is not numeric or then varchar when".split())  # noqa: SIM905  as above
"""What may stand before a parenthesis and calls nothing."""
_NO_PARENTHESES = frozenset(Spark.parser_class.NO_PAREN_FUNCTIONS)
_MOMENT = re.compile(r"\s*(now|today|tomorrow|yesterday)\b\s*\S*\s*", re.IGNORECASE)


def check_calls(sql: str) -> None:
    """Raises ContractError for a call of what is not in ALLOWED, with its place and the nearest name that is.

    It looks at the words before parentheses, because that is what Spark will read: a parser of another make has names
    of its own for many functions.
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


def _is_word(token: Token, sql: str) -> bool:
    return token.token_type == TokenType.IDENTIFIER or sql[token.start].isalpha() or sql[token.start] == "_"


def _may_call(before: Token | None, token: Token) -> bool:
    """A name behind a dot is one of another schema; `like any (…)` is no call."""
    name, preceding = token.text.lower(), "" if before is None else before.text.lower()
    if token.token_type == TokenType.IDENTIFIER or preceding == ".":
        return name in ALLOWED and preceding != "."
    return name in ALLOWED | _SYNTAX or (name in ("any", "all", "some") and preceding in ("like", "ilike"))


def is_moment(text: str) -> bool:
    """Whether Spark takes this text for another time at each start, where it needs a time."""
    return _MOMENT.fullmatch(text) is not None
