"""What an aggregate computes: `count(*)`, or sum, avg, min or max of a SQL expression, each into a field."""

import re
from dataclasses import dataclass
from typing import Literal, get_args

from google.protobuf.descriptor import FieldDescriptor

from stream_processor.definition.nearest import hint
from stream_processor.errors import ContractError

Function = Literal["count", "sum", "avg", "min", "max"]
FUNCTIONS: tuple[Function, ...] = get_args(Function)
_FORM = re.compile(r"(\w+)\s*\((.*)\)")


@dataclass(frozen=True)
class Aggregate:
    """One number of a group; `argument` is SQL on the row, and None of count(*)."""

    field: FieldDescriptor
    function: Function
    argument: str | None


def parse(text: str) -> tuple[Function, str | None]:
    """The function that `text` calls, and its argument. Raises ContractError for any other form."""
    found = _FORM.fullmatch(text)
    if found is None:
        raise ContractError(f"{text!r} is not of the form count(*) or sum(...)")
    name, argument = found[1].lower(), found[2].strip()
    function = next((each for each in FUNCTIONS if each == name), None)
    if function is None:
        raise ContractError(f"no aggregate {found[1]!r}; {hint(name, FUNCTIONS)}")
    if (function == "count") != (argument == "*"):
        raise ContractError("count counts rows: count(*)" if function == "count" else f"{text!r} needs an expression")
    return function, None if function == "count" else argument
