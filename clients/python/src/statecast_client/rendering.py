"""The output of the command: decoded payloads, for people or as one JSON object a line."""

import base64
import json
import re
from collections.abc import Callable
from functools import cache
from math import isfinite
from pathlib import Path
from typing import Any

from google.protobuf.json_format import MessageToDict
from google.protobuf.message import DecodeError, Message

from statecast.descriptors import DescriptorsError, MessageTypes
from statecast.query.v1 import query_pb2
from statecast.query.v1 import query_service_pb2 as query
from statecast.state.v1 import state_pb2
from statecast_client.errors import InvalidError
from statecast_client.keys import Change

_HALF_SURROGATE = re.compile("[\ud800-\udfff]")

Decode = Callable[[bytes], object]


@cache
def decoder(message: str, descriptors: Path | None = None) -> Decode:
    """Returns the function that turns the payloads of a store into JSON values.

    `message` is a message of the contract or of the directory `descriptors`, `json` or `bytes`. Bytes, payloads that
    cannot be decoded, and those of a message that this client does not have become `{"base64": …}`. Raises InvalidError
    for a directory that cannot be used.
    """
    try:
        kind = None if message == "json" else _types(descriptors).message_class(message)
    except KeyError:
        return _as_base64

    def decode(payload: bytes) -> object:
        try:
            if kind is None:
                return json.loads(payload, parse_float=_finite, parse_constant=_finite)
            return MessageToDict(kind.FromString(payload), preserving_proto_field_name=True)
        except (ValueError, DecodeError, RecursionError):
            return _as_base64(payload)

    return decode


def fields(message: Message) -> dict[str, Any]:
    """Returns a message as the contract's JSON, with the names of its fields and with zeros."""
    return MessageToDict(message, preserving_proto_field_name=True, always_print_fields_with_no_presence=True)


def line(document: object) -> str:
    """Returns a document as JSON in one line, which UTF-8 can encode: half a surrogate stays an escape, as it came."""
    return _escaped(json.dumps(document, ensure_ascii=False, separators=(",", ":")))


def state_document(state: query_pb2.State, value: object) -> dict[str, Any]:
    """Returns a state with its decoded value in the place of its payload."""
    document = fields(state) | {"value": value}
    del document["payload"]
    return document


def key_text(key: state_pb2.StateKey, separator: str) -> str:
    return separator.join((key.group, key.sort, key.member)) if key.member else key.group


def value_text(answer: query.GetStateResponse, value: object, separator: str) -> str:
    """Returns a value for people: where it is from, and its fields below."""
    state, freshness = answer.state, answer.freshness
    committed = f"  committed {state.commit_time.ToJsonString()}" if state.HasField("commit_time") else ""
    by = f"lag {freshness.lag_ms} ms  by {freshness.answered_by}{' (forwarded)' if freshness.forwarded else ''}"
    head = f"{key_text(state.key, separator)}  {position_text(state.position)}{committed}  {by}"
    return f"{head}\n{_escaped(json.dumps(value, ensure_ascii=False, indent=2))}"


def change_text(change: Change, value: object, separator: str) -> str:
    gone = "deleted" if change.absence and change.absence.deleted else "has no value"
    what = gone if change.state is None else line(value)
    return f"{key_text(change.key, separator)}  {position_text(change.position)}  {what}"


def position_text(position: state_pb2.Position) -> str:
    return f"@{position.epoch}/{position.offset}"


def shards_text(listing: query.ListShardsResponse) -> list[str]:
    rows = [("STORE", "PARTITION", "RANK", "INSTANCE", "ADDRESS", "SERVING", "LAG_RECORDS", "LAG_MS")]
    for shard in listing.shards:
        for replica in shard.replicas:
            lags = (str(replica.lag_records), str(replica.lag_ms)) if replica.lag_ms >= 0 else ("?", "?")
            serving = "yes" if replica.serving else "no"
            place = shard.store, str(shard.partition), str(replica.rank)
            rows.append((*place, replica.instance, replica.address, serving, *lags))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


@cache
def _types(descriptors: Path | None) -> MessageTypes:
    try:
        return MessageTypes.read(descriptors)
    except DescriptorsError as error:
        raise InvalidError(f"the descriptors: {error}") from error


def _finite(text: str) -> float:
    """Returns a number of JSON. Raises ValueError for NaN and infinity, which no JSON that is written can have."""
    number = float(text)
    if not isfinite(number):
        raise ValueError(f"{text} is no number of JSON")
    return number


def _escaped(text: str) -> str:
    return _HALF_SURROGATE.sub(lambda half: f"\\u{ord(half[0]):04x}", text)


def _as_base64(payload: bytes) -> object:
    return {"base64": base64.b64encode(payload).decode()}
