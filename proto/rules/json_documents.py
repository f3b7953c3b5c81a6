"""The JSON document that a google.protobuf.Value stands for, which is how a row of a JSON store is sent."""

from typing import Any

from google.protobuf.json_format import MessageToDict
from google.protobuf.struct_pb2 import Value

MAX_EXACT = 2**53
"""Up to here a double, the number type of Value and JavaScript, holds every integer."""


def document_of(value: Value) -> Any:
    """Returns the document; numbers without a fraction are integers again, as JSON does not tell 1 from 1.0."""
    return _with_integers(MessageToDict(value))


def _with_integers(document: Any) -> Any:
    if isinstance(document, dict):
        return {name: _with_integers(each) for name, each in document.items()}
    if isinstance(document, list):
        return [_with_integers(each) for each in document]
    is_integer = isinstance(document, float) and document.is_integer() and abs(document) <= MAX_EXACT
    return int(document) if is_integer else document
