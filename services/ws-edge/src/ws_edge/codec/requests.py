"""Reads frames of clients leniently: each part by itself, and a watch's id before its other fields can fail."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import DecodeError
from google.protobuf.struct_pb2 import Value

from statecast.push.v2.push_pb2 import ClientFrame, Renew, Watch
from statecast_service.settings import suggest
from ws_edge.errors import MalformedFrameError, MalformedWatchError, RequestError
from ws_edge.model.questions import Question, question_of
from ws_edge.model.states import Path
from ws_edge.model.steps import MAX_STEPS, Step, step_of
from ws_edge.model.stores import FindStore, Store, check_key_part

MAX_ID = 2**32 - 1
MAX_UNKNOWN = 16
"""Most unknown fields of a watch, or of a frame beside its watches, that are named."""
MAX_FIELDS = 256
"""Most names in a list of fields: each row is compared with all of them, and a store of JSON has any names."""
MAX_DIGITS = 1000
MAX_DEPTH = 16
MARKS = re.compile(r'"(?:[^"\\]|\\.)*+"?|[\[\]{}]', re.DOTALL)
"""A text without an end is a mark as well: else each quote in it would be looked at as its beginning, for seconds."""
OPENING, CLOSING = frozenset("[{"), frozenset("]}")
AN_OBJECT, A_TEXT, A_BOOLEAN, A_NUMBER = "an object", "a text", "true or false", "a whole number"
KINDS = {
    FieldDescriptor.CPPTYPE_MESSAGE: AN_OBJECT,
    FieldDescriptor.CPPTYPE_STRING: A_TEXT,
    FieldDescriptor.CPPTYPE_BOOL: A_BOOLEAN,
}
"""What fields hold in JSON; all others hold whole numbers."""
AN_ID = f"an id is a whole number from 1 to {MAX_ID}"
CHANNEL_FIELDS = frozenset({"id", "channel", "token", "below"})
"""The token is ignored: a channel begins anew, and its places resume."""


class WatchRequest(NamedTuple):
    """A watch to begin. Its stores are resolved; the question has the requested limit."""

    id: int
    question: Question
    steps: tuple[Step, ...] = ()
    fields: tuple[str, ...] = ()
    """The fields of a row to be sent, sorted; none for all."""
    delta: bool = False
    times: bool = False
    interval_ms: int | None = None
    token: str = ""
    below: Mapping[Path, str] = {}
    """The tokens of the places below, by their paths."""


class ChannelRequest(NamedTuple):
    """A channel to watch."""

    id: int
    channel: str
    below: Mapping[Path, str] = {}


class RefusedWatch(NamedTuple):
    """A watch that cannot begin."""

    id: int
    error: RequestError


class UnknownField(NamedTuple):
    """A field that was ignored. `name` is its path from the frame, without indices."""

    name: str
    text: str


@dataclass(slots=True)
class ClientRequest:
    """The requests of a client's frame. They are handled in the order of the fields."""

    unwatch: list[int] = field(default_factory=list)
    watches: list[WatchRequest | ChannelRequest | RefusedWatch] = field(default_factory=list)
    ticket: str | None = None
    """The ticket that renews the access; None for no renewal."""
    ping: bool = False
    errors: list[RequestError] = field(default_factory=list)
    """Faults of parts that have no id."""
    unknown: list[UnknownField] = field(default_factory=list)

    @property
    def parts(self) -> int:
        """The number of watches to begin and to end, of tokens of places below, and of faults to report."""
        tokens = sum(len(each.below) for each in self.watches if not isinstance(each, RefusedWatch))
        return len(self.unwatch) + len(self.watches) + tokens + len(self.errors) + len(self.unknown)


def read_json(text: str | bytes, find: FindStore) -> ClientRequest:
    """Reads a frame in JSON. Raises MalformedFrameError when it is no JSON object."""
    try:
        document = _document(text)
    except json.JSONDecodeError as error:
        raise MalformedFrameError(f"the frame is not JSON at character {error.pos}") from error
    except ValueError as error:
        raise MalformedFrameError(f"the frame is not JSON: {one_line(error)}") from error
    if not isinstance(document, dict):
        raise MalformedFrameError("the frame is not a JSON object")
    request = ClientRequest()
    document = {each.name: value for each, value in known_fields(document, ClientFrame.DESCRIPTOR, request.unknown)}
    for value in _list(document, "unwatch", request):
        ended = _id_of(value)
        if ended is None:
            request.errors.append(MalformedFrameError(f"unwatch: {_shown(value)} is no id: {AN_ID}"))
        else:
            request.unwatch.append(ended)
    for value in _list(document, "watch", request):
        _read_watch(value, find, request)
    renew, ping = document.get("renew"), document.get("ping")
    if renew is not None:
        fields = known_fields(renew, Renew.DESCRIPTOR, request.unknown, "renew.") if isinstance(renew, dict) else ()
        ticket = {each.name: value for each, value in fields}.get("ticket")
        if isinstance(ticket, str):
            request.ticket = ticket
        else:
            request.errors.append(MalformedFrameError("renew: it needs a ticket, a text"))
    request.ping = ping is not None and ping is not False
    return request


def read_binary(content: bytes, find: FindStore) -> ClientRequest:
    """Reads a ClientFrame in the binary form. Raises MalformedFrameError when it is invalid."""
    try:
        frame = ClientFrame.FromString(content)
    except DecodeError as error:
        raise MalformedFrameError(f"the frame is not a ClientFrame: {one_line(error)}") from error
    request = ClientRequest(list(frame.unwatch), ping=frame.HasField("ping"))
    request.ticket = frame.renew.ticket if frame.HasField("renew") else None
    for watch in frame.watch:
        if watch.id:
            request.watches.append(_resolved(watch, find))
        else:
            request.errors.append(MalformedFrameError(f"watch: 0 is no id: {AN_ID}"))
    return request


def watch_request(message: Watch, find: FindStore) -> WatchRequest:
    """Resolves a watch of rows. Raises MalformedWatchError for an invalid watch, and UnknownStoreError."""
    try:
        return _watch_request(message, find)
    except MalformedFrameError as error:
        raise MalformedWatchError(str(error)) from error


def known_fields(
    document: Mapping[str, Any], message: Descriptor, unknown: list[UnknownField], above: str = ""
) -> Iterator[tuple[FieldDescriptor, Any]]:
    """Yields the fields that the message has, with their values, but none that is null.

    Adds others to `unknown`, as long as that has fewer than MAX_UNKNOWN.
    """
    fields = _fields_of(message)
    for name, value in document.items():
        known = fields.get(name)
        if known is None and len(unknown) < MAX_UNKNOWN:
            shown = name[:80].encode(errors="backslashreplace").decode()
            hint = suggest(shown, list(message.fields_by_name))
            unknown.append(UnknownField(above + shown, f"{above}{shown} is unknown and ignored; {hint}"))
        elif known is not None and value is not None:
            yield known, value


def values_of(
    document: Mapping[str, Any], message: Descriptor, unknown: list[UnknownField], above: str = ""
) -> dict[str, Any]:
    """Returns the values of a message in JSON as its class takes them; `unknown` is as for `known_fields`.

    A whole number may have any form that proto3 JSON allows. Raises ValueError for what no field of its kind holds.
    """
    values = dict[str, Any]()
    for known, value in known_fields(document, message, unknown, above):
        name = above + known.name
        if known.is_repeated and not isinstance(value, list):
            raise ValueError(f"{name} is {_shown(value)}: it must be a list")
        if known.is_repeated:
            values[known.name] = [_value_of(each, known, name, unknown) for each in value]
        else:
            values[known.name] = _value_of(value, known, name, unknown)
    return values


def one_line(error: Exception) -> str:
    """Returns the text of a parser's error, on one line and short enough for a frame."""
    text = " ".join(str(error).split())[:300]
    return text.encode(errors="backslashreplace").decode()


def _read_watch(value: Any, find: FindStore, request: ClientRequest) -> None:
    if not isinstance(value, dict) or value.get("id") is None:
        request.errors.append(MalformedFrameError(f"watch: {_shown(value)} has no id: {AN_ID}"))
        return
    watch_id = _id_of(value["id"])
    if watch_id is None:
        request.errors.append(MalformedFrameError(f"watch: {_shown(value['id'])} is no id: {AN_ID}"))
        return
    unknown = list[UnknownField]()
    try:
        message = Watch(**values_of(value, Watch.DESCRIPTOR, unknown))
    except ValueError as error:
        refusal = MalformedWatchError(f"it is no watch: {one_line(error)}")
        request.watches.append(RefusedWatch(watch_id, refusal))
        return
    request.unknown += (UnknownField(name, f"watch {watch_id}: {text}") for name, text in unknown)
    request.watches.append(_resolved(message, find))


def _resolved(message: Watch, find: FindStore) -> WatchRequest | ChannelRequest | RefusedWatch:
    try:
        if message.channel:
            return _channel_request(message)
        return watch_request(message, find)
    except RequestError as error:
        return RefusedWatch(message.id, error)


def _channel_request(message: Watch) -> ChannelRequest:
    others = [each.name for each, _ in message.ListFields() if each.name not in CHANNEL_FIELDS]
    if others:
        raise MalformedWatchError(f"a watch of a channel takes no {', '.join(others)}: the channel's watches have them")
    return ChannelRequest(message.id, message.channel, _below(message))


def _watch_request(message: Watch, find: FindStore) -> WatchRequest:
    store = find(message.store)
    question = question_of(store, message.group, message)
    question.check()
    if len(message.steps) > MAX_STEPS:
        raise MalformedFrameError(f"it has {len(message.steps)} steps: at most {MAX_STEPS} are followed")
    steps, before = list[Step](), store
    for each in message.steps:
        step = step_of(before, each, find)
        step = step._replace(fields=fields_of(step.store, each.fields))
        steps.append(step)
        before = step.store
    return WatchRequest(
        message.id,
        question,
        tuple(steps),
        fields_of(store, message.fields),
        message.delta,
        message.times,
        message.interval_ms if message.HasField("interval_ms") else None,
        message.token,
        _below(message),
    )


def fields_of(store: Store, names: Iterable[str]) -> tuple[str, ...]:
    """Returns the names of fields, sorted.

    Raises MalformedFrameError for a field that the store's rows do not have, and for more than MAX_FIELDS.
    """
    distinct = sorted(set(names))
    if len(distinct) > MAX_FIELDS:
        raise MalformedFrameError(f"fields: there are {len(distinct)} names: give at most {MAX_FIELDS}, or none")
    for name in distinct:
        if store.message is not Value and name not in store.message.DESCRIPTOR.fields_by_name:
            hint = suggest(name, store.message.DESCRIPTOR.fields_by_name)
            raise MalformedFrameError(f"fields: a row of {store.name} has no field {name[:80]!r}; {hint}")
        check_key_part("fields", name)
    return tuple(distinct)


def _below(message: Watch) -> dict[Path, str]:
    return {tuple(each.path): each.token for each in message.below}


def _value_of(value: Any, known: FieldDescriptor, name: str, unknown: list[UnknownField]) -> Any:
    kind, below = KINDS.get(known.cpp_type, A_NUMBER), known.message_type
    if below is not None and isinstance(value, dict):
        return values_of(value, below, unknown, f"{name}.")
    if (kind is A_TEXT and isinstance(value, str)) or (kind is A_BOOLEAN and isinstance(value, bool)):
        return value
    if kind is A_NUMBER and (number := _whole(value)) is not None:
        return number
    raise ValueError(f"{name} is {_shown(value)}: it must be {kind}")


def _list(document: Mapping[str, Any], name: str, request: ClientRequest) -> list[Any]:
    value = document.get(name)
    if value is None or isinstance(value, list):
        return value or []
    request.errors.append(MalformedFrameError(f"{name} is no list"))
    return []


def _id_of(value: Any) -> int | None:
    """Returns the id; None when it is invalid."""
    number = _whole(value)
    return number if number is not None and 0 < number <= MAX_ID else None


def _whole(value: Any) -> int | None:
    """Returns a whole number of any form that proto3 JSON allows; None for other values."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= len(str(MAX_ID)):
        return int(value)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _document(text: str | bytes) -> Any:
    """Returns the JSON; without what is nested too deep to be read, so that the errors of watches have their ids."""
    try:
        return json.loads(text, parse_int=_number)
    except RecursionError:
        return json.loads(_shallow(text if isinstance(text, str) else text.decode()), parse_int=_number)


def _shallow(text: str) -> str:
    """Returns the JSON with null for all that is nested deeper than any field of a frame."""
    kept, depth, start = list[str](), 0, 0
    for mark in MARKS.finditer(text):
        if mark[0] in OPENING:
            depth += 1
            if depth == MAX_DEPTH:
                kept.append(text[start : mark.start()] + "null")
        elif mark[0] in CLOSING:
            depth -= 1
            if depth == MAX_DEPTH - 1:
                start = mark.end()
    return "".join([*kept, text[start:]])


def _number(digits: str) -> int | float:
    """Returns a whole number; one of more digits than Python reads fits into no field, so infinity is as good."""
    return int(digits) if len(digits) <= MAX_DIGITS else float(digits)


def _shown(value: Any) -> str:
    """Returns a value of JSON in a few characters, without its content."""
    if isinstance(value, dict):
        return "an object"
    return "a list" if isinstance(value, list) else json.dumps(value)[:80]


@cache
def _fields_of(message: Descriptor) -> dict[str, FieldDescriptor]:
    """Returns the fields by all of their names in JSON."""
    return {name: each for each in message.fields for name in (each.name, each.camelcase_name)}
