"""Values in files: paths, SQL, durations like `500ms`, sizes like `64KiB`, and starting offsets."""

import re
from datetime import UTC, date, datetime, timedelta
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema


def one_line(text: str) -> str:
    """Returns the text with each run of white space as one blank."""
    return " ".join(text.split())


Sql = Annotated[str, Field(min_length=1), AfterValidator(one_line)]


def _paths(value: object) -> object:
    """Returns one path, or a list of different ones. Raises ValueError for any other form."""
    paths = value if isinstance(value, list) else [value]
    if not paths or not all(isinstance(each, str) for each in paths):
        raise ValueError("must be a path or a list of paths")
    if len(set(paths)) < len(paths):
        raise ValueError("names a path twice")
    return value


Paths = Annotated[str | Annotated[list[str], Field(min_length=1)], BeforeValidator(_paths)]

MAX_DAYS = 36_500
"""A hundred years: longer ones are beyond what a clock of microseconds adds up, or a timedelta holds."""
_UNITS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_DURATION = re.compile(r"(\d+)\s*(ms|s|m|h|d)")


def parse_duration(text: object) -> timedelta:
    """Returns the duration that `text` names. Raises ValueError for any other form."""
    if isinstance(text, timedelta):
        return text
    match = _DURATION.fullmatch(str(text).strip())
    if match is None:
        raise ValueError(f"{text!r} is not a duration like 500ms, 60s or 2m")
    milliseconds = int(match[1]) * _UNITS[match[2]]
    if milliseconds > MAX_DAYS * _UNITS["d"]:
        raise ValueError(f"is too long, {MAX_DAYS}d at most")
    return timedelta(milliseconds=milliseconds)


def spark_text(duration: timedelta) -> str:
    """Returns the duration as Spark's triggers take it."""
    return f"{duration // timedelta(milliseconds=1)} milliseconds"


def human(duration: timedelta) -> str:
    """Returns the duration as people write it, in the largest unit that it is a multiple of."""
    total = duration // timedelta(milliseconds=1)
    unit = max((name for name in _UNITS if total % _UNITS[name] == 0), key=_UNITS.__getitem__) if total else "s"
    return f"{total // _UNITS[unit]}{unit}"


_READ = BeforeValidator(parse_duration)
_EXAMPLES = ["500ms", "60s", "2m", "1h", "7d"]
_SHOWN = WithJsonSchema({"type": "string", "pattern": rf"^{_DURATION.pattern}$", "examples": _EXAMPLES}, "validation")
Duration = Annotated[timedelta, _READ, _SHOWN]
CheckpointInterval = Annotated[timedelta, Field(ge=timedelta(seconds=5)), _READ, _SHOWN]
"""Spark refuses less: a checkpoint would cost more than the records between two of them."""

_SIZE_UNITS = {"B": 1, "KiB": 1024, "MiB": 1024**2, "GiB": 1024**3}
_SIZE = re.compile(r"(\d+)\s*(B|KiB|MiB|GiB)")


def parse_size(text: object) -> int:
    """Returns the bytes that `text` names. Raises ValueError for any other form."""
    match = _SIZE.fullmatch(str(text).strip())
    if match is None:
        raise ValueError(f"{text!r} is not a size like 64KiB or 1MiB")
    return int(match[1]) * _SIZE_UNITS[match[2]]


Size = Annotated[
    int,
    BeforeValidator(parse_size),
    WithJsonSchema({"type": "string", "pattern": rf"^{_SIZE.pattern}$", "examples": ["64KiB", "1MiB"]}, "validation"),
]
"""Bytes."""

EARLIEST, LATEST = "earliest", "latest"


def parse_starting_offsets(value: object) -> str:
    """Parses starting offsets: EARLIEST, LATEST, or a moment as text in UTC. Raises ValueError for any other form."""
    if value in (EARLIEST, LATEST):
        return str(value)
    try:
        moment = value if isinstance(value, date) else datetime.fromisoformat(str(value))
    except ValueError:
        raise ValueError("must be earliest, latest or a time like 2026-10-25T06:00:00Z") from None
    if not isinstance(moment, datetime) or moment.tzinfo is None:
        raise ValueError("must say the time and its zone, as 2026-10-25T06:00:00Z does")
    if moment > datetime.now(UTC):
        raise ValueError("lies in the future")
    try:
        return moment.astimezone(UTC).isoformat()
    except OverflowError:
        raise ValueError("lies before the year 1 in UTC") from None


StartingOffsets = Annotated[
    str,
    BeforeValidator(parse_starting_offsets),
    WithJsonSchema(
        {"anyOf": [{"enum": [EARLIEST, LATEST]}, {"type": "string", "pattern": r"^\d{4}-\d{2}-\d{2}[T ]"}]},
        "validation",
    ),
]
