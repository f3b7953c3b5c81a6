"""Rows of JSON as google.protobuf.Value, so that they are sent, compared and written as every other row."""

import json
import math
from typing import Any, NoReturn

from google.protobuf import json_format
from google.protobuf.message import DecodeError, Message
from google.protobuf.struct_pb2 import Value

from statecast.json_documents import MAX_EXACT

MAX_DEPTH = 30
"""Readers of Protobuf give up beyond 100 messages within each other, and a level of JSON takes up to three."""
MAX_DIGITS = len(str(-MAX_EXACT))


def decode(payload: bytes) -> Value:
    """Returns the value of a JSON text; integers beyond MAX_EXACT become texts, as int64 is in proto3 JSON.

    Raises DecodeError when it is not JSON, is nested deeper than MAX_DEPTH, or has a number that no double holds.
    """
    try:
        document = _plain(json.loads(payload, parse_int=_integer, parse_constant=_no_constant), MAX_DEPTH)
        return json_format.ParseDict(document, Value())
    except (ValueError, RecursionError, json_format.ParseError) as error:
        raise DecodeError(str(error)) from error


def text_of(row: Message, field: str) -> str:
    """Returns the text in a field of the outermost object, a whole number as its digits; nothing otherwise."""
    if not isinstance(row, Value) or row.WhichOneof("kind") != "struct_value" or field not in row.struct_value.fields:
        return ""
    value = row.struct_value.fields[field]
    if value.WhichOneof("kind") == "number_value" and value.number_value.is_integer():
        return str(int(value.number_value))
    return value.string_value


def _plain(value: Any, depth: int) -> Any:
    if depth == 0 and isinstance(value, (dict, list)):
        raise ValueError(f"it is nested more than {MAX_DEPTH} deep")
    if isinstance(value, dict):
        return {name: _plain(each, depth - 1) for name, each in value.items()}
    if isinstance(value, list):
        return [_plain(each, depth - 1) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError("it has a number beyond what a double holds")
    return value


def _integer(digits: str) -> int | str:
    """Returns the number, or its digits when no double holds it; Python itself reads 4,300 digits at most."""
    number = int(digits) if len(digits) <= MAX_DIGITS else None
    return number if number is not None and abs(number) <= MAX_EXACT else digits


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")
