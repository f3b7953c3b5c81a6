"""Reads durations as people write them: `500ms`, `60s`, `2m`, `1h`, `7d`."""

import re
from datetime import timedelta
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, WithJsonSchema

SHORTEST_CHECKPOINT = timedelta(seconds=5)
"""Spark refuses less: a checkpoint would cost more than the records between two of them."""

_UNITS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400}
_FORM = re.compile(r"(\d+)\s*(ms|s|m|h|d)")


def parse(text: object) -> timedelta:
    """The duration that `text` names. Raises ValueError for any other form."""
    if isinstance(text, timedelta):
        return text
    found = _FORM.fullmatch(str(text).strip())
    if found is None:
        raise ValueError(f"{text!r} is not a duration like 500ms, 60s or 2m")
    return timedelta(seconds=int(found[1]) * _UNITS[found[2]])


def spark_text(duration: timedelta) -> str:
    """The duration as Spark's triggers take it."""
    return f"{round(duration.total_seconds() * 1000)} milliseconds"


def human(duration: timedelta) -> str:
    """The duration as people write it, in the largest unit that it is a multiple of; the inverse of `parse`."""
    if not duration:
        return "0s"
    milliseconds = round(duration.total_seconds() * 1000)
    lengths = [(name, round(seconds * 1000)) for name, seconds in _UNITS.items()]
    name, length = next(each for each in reversed(lengths) if milliseconds % each[1] == 0)
    return f"{milliseconds // length}{name}"


def _long_enough(interval: timedelta) -> timedelta:
    if interval < SHORTEST_CHECKPOINT:
        raise ValueError(f"real-time mode needs {SHORTEST_CHECKPOINT.seconds}s between checkpoints at least")
    return interval


_WRITTEN = {"type": "string", "pattern": rf"^{_FORM.pattern}$", "examples": ["500ms", "60s", "2m", "1h", "7d"]}
Duration = Annotated[timedelta, BeforeValidator(parse), WithJsonSchema(_WRITTEN, mode="validation")]
CheckpointInterval = Annotated[Duration, AfterValidator(_long_enough)]
