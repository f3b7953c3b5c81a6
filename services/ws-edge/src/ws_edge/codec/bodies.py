"""Encodes rows for frames, whole or the changed fields only; each body is made once for all clients that share it."""

import json
from collections.abc import Callable
from typing import Any, NamedTuple

from google.protobuf.message import Message
from google.protobuf.struct_pb2 import Value
from google.protobuf.timestamp_pb2 import Timestamp

from statecast.json_documents import document_of
from statecast.push.v2.push_pb2 import Problem, Row
from ws_edge.errors import EdgeError
from ws_edge.model.documents import document
from ws_edge.model.states import Form, KeyState, StoreKey
from ws_edge.watches.subscription import RowNews

_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode  # json.dumps makes one for each call

MAX_BODIES = 4
"""How many bodies a state keeps. While it is the newest, its watchers need few different ones."""


class View(NamedTuple):
    """How rows of a place are shown."""

    fields: tuple[str, ...] = ()
    """The names of the shown fields, sorted; empty for all."""
    delta: bool = False
    times: bool = False
    key_field: str = ""
    """The field that holds the key: a row with it is sent without a separate key. Empty if there is no such field."""
    sort_field: str = ""


def json_body(news: RowNews, view: View) -> bytes | None:
    """Returns a Row as JSON; None when the client has no field that has changed."""
    state = news.state
    if state.row is None:
        return json_bytes({**_key(state.key), "left": True, **_skipped(news)})
    names = _shown_names(news, view)
    if names == frozenset():
        return None
    body = _shared(state, ("json", view, names), lambda: _json_row(state, view, names))
    if news.skipped:
        body = b'%b,"skipped":%d}' % (body[:-1], news.skipped)
    return body


def binary_body(news: RowNews, view: View) -> bytes | None:
    """Returns the same as `json_body`, in the binary form."""
    state = news.state
    if state.row is None:
        return Row(key=state.key.member, left=True, skipped=news.skipped).SerializeToString()
    names = _shown_names(news, view)
    if names == frozenset():
        return None
    body = _shared(state, ("binary", view, names), lambda: _binary_row(state, view, names))
    return body + Row(skipped=news.skipped).SerializeToString()


def json_error(key: StoreKey, error: EdgeError) -> bytes:
    """Returns a Row as JSON, with the error because of which the row cannot be shown."""
    return json_bytes({**_key(key), "error": {"code": error.code, "message": str(error)}})


def binary_error(key: StoreKey, error: EdgeError) -> bytes:
    """Returns the same as `json_error`, in the binary form."""
    return Row(key=key.member, error=Problem(code=error.code, message=str(error))).SerializeToString()


def rfc3339(nanoseconds: int) -> str:
    """Returns the time, in nanoseconds since 1970, as a Timestamp in proto3 JSON."""
    return timestamp(nanoseconds).ToJsonString()


def timestamp(nanoseconds: int) -> Timestamp:
    """Returns the time, in nanoseconds since 1970, as a message."""
    moment = Timestamp()
    moment.FromNanoseconds(nanoseconds)
    return moment


def _shown_names(news: RowNews, view: View) -> frozenset[str] | None:
    """Returns the changed fields that the view shows; None when the whole row is sent, with its sort value."""
    if news.names is None or not view.fields:
        return news.names
    return news.names.intersection(view.fields)


def _shared(state: KeyState, form: Form, make: Callable[[], bytes]) -> bytes:
    body = state.bodies.get(form)
    if body is None:
        if len(state.bodies) >= MAX_BODIES:
            state.bodies.clear()
        body = state.bodies[form] = make()
    return body


def _json_row(state: KeyState, view: View, names: frozenset[str] | None) -> bytes:
    """Returns a Row as JSON. `names` are the changed fields; None for the whole row, as a new one."""
    shown = _shown(document(state), view)
    time = {"commit_time": rfc3339(state.commit_ns)} if view.times and state.commit_ns is not None else {}
    key: dict[str, Any] = {} if _holds(shown, view.key_field, state.key.member) else _key(state.key)
    sort = {"sort": state.key.sort} if _needs_sort(state, shown, view, names) else {}
    body = json_bytes({**key, **sort, "row": shown, **time})
    if names is None or not view.delta or not isinstance(shown, dict):
        return body
    changed = {name: shown.get(name) for name in sorted(names)}
    if any(shown.get(name, "") is None for name in names):
        return body  # a null would say that the field is gone
    delta = json_bytes({**_key(state.key), **sort, "delta": changed, **time})
    return delta if len(delta) < len(body) else body


def _binary_row(state: KeyState, view: View, names: frozenset[str] | None) -> bytes:
    shown = _shown(document(state), view)
    row = Row(encoded=_row_bytes(state.row, view.fields))
    if _needs_sort(state, shown, view, names):
        row.sort = state.key.sort
    if view.times and state.commit_ns is not None:
        row.commit_time.CopyFrom(timestamp(state.commit_ns))
    whole = Row()
    whole.CopyFrom(row)
    if not _holds(shown, view.key_field, state.key.member):
        whole.key = state.key.member
    body = whole.SerializeToString()
    if names is None or not view.delta or not isinstance(shown, dict):
        return body
    row.key, row.encoded = state.key.member, _row_bytes(state.row, tuple(sorted(names)))
    row.changed.extend(sorted(names))
    delta = row.SerializeToString()
    return delta if len(delta) < len(body) else body


def _row_bytes(row: Message, fields: tuple[str, ...]) -> bytes:
    """Returns the row encoded with these fields alone, or all when there are none."""
    if isinstance(row, Value):
        return json_bytes(_shown(document_of(row), View(fields)))
    if not fields:
        return row.SerializeToString(deterministic=True)
    part = type(row)()
    part.CopyFrom(row)
    for field in row.DESCRIPTOR.fields:
        if field.name not in fields:
            part.ClearField(field.name)
    part.DiscardUnknownFields()
    return part.SerializeToString(deterministic=True)


def _shown(row: Any, view: View) -> Any:
    if not view.fields or not isinstance(row, dict):
        return row
    return {name: value for name, value in row.items() if name in view.fields}


def _needs_sort(state: KeyState, shown: Any, view: View, names: frozenset[str] | None) -> bool:
    """Returns whether a row is sent with its sort value: a new one, or one that the `sort_field` does not hold."""
    is_unknown = names is None or bool(view.sort_field)
    return is_unknown and bool(state.key.sort) and not _holds(shown, view.sort_field, state.key.sort)


def _holds(row: Any, field: str, text: str) -> bool:
    return bool(field) and isinstance(row, dict) and row.get(field) == text


def _key(key: StoreKey) -> dict[str, Any]:
    return {"key": key.member} if key.member else {}


def _skipped(news: RowNews) -> dict[str, Any]:
    return {"skipped": news.skipped} if news.skipped else {}


def json_bytes(value: Any) -> bytes:
    """Returns the value as JSON."""
    return _encode(value).encode()
