"""Which socket an address asks for: the dialect that is spoken there, and what it begins with."""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import parse_qs

from ws_edge.dialects.frames import Dialect, WatchRequest, check_interval, check_position
from ws_edge.dialects.order_frames import STORE, OrderFrames
from ws_edge.dialects.stream_frames import BINARY_SUBPROTOCOL, StreamFrames
from ws_edge.errors import MalformedFrameError, UnknownPathError
from ws_edge.states import Position, StoreKey
from ws_edge.stores import Stores, check_key_part

ORDERS = "/update/orders"
STREAM = "/v1/stream"
TICKET_STREAM = "/v1/tickets/stream"
"""The same for browsers, whose sockets cannot send headers: a ticket in the query says who comes."""

CHANNEL = re.compile(r"/v1/channels/([^/]+)/stream")
WHOLE_NUMBER = re.compile(r"-?[0-9]{1,19}")


class Attachment(NamedTuple):
    """To which channel a socket is to be attached, and what is spoken on it."""

    channel: str
    frames: StreamFrames


class Route(NamedTuple):
    """What a socket's address and subprotocol ask for."""

    dialect: Dialect
    subprotocol: str | None = None
    first: WatchRequest | None = None
    """A request that the address makes."""
    attachment: Attachment | None = None


class Routes:
    """All sockets that there are."""

    def __init__(self, stores: Stores) -> None:
        self._orders = OrderFrames()
        self._stream = StreamFrames(stores, binary=False)
        self._binary = StreamFrames(stores, binary=True)

    def find(self, scope: Mapping[str, Any]) -> Route:
        """Reads an ASGI scope. Raises UnknownPathError, or MalformedFrameError for wrong parameters."""
        path = scope["path"]
        if path == ORDERS:
            return Route(self._orders)
        if path.startswith(ORDERS + "/") and len(path) > len(ORDERS) + 1:
            return Route(self._orders, first=_path_request(path[len(ORDERS) + 1 :], scope["query_string"]))
        channel = CHANNEL.fullmatch(path)
        if channel is None and path not in (STREAM, TICKET_STREAM):
            there_are = f"{ORDERS}, {STREAM} and /v1/channels/CHANNEL/stream"
            raise UnknownPathError(f"there is no socket at {path[:200]}: there are {there_are}")
        binary = BINARY_SUBPROTOCOL in scope["subprotocols"]
        frames = self._binary if binary else self._stream
        attachment = None if channel is None else Attachment(channel[1], frames)
        return Route(frames, BINARY_SUBPROTOCOL if binary else None, attachment=attachment)


def _path_request(order_id: str, query_string: bytes) -> WatchRequest:
    """The subscription that an address makes; raises MalformedFrameError."""
    query = parse_qs(query_string.decode("latin-1"), keep_blank_values=True)
    check_key_part("order_id", order_id)
    epoch, offset, interval = (_number(query, name) for name in ("position_epoch", "position_offset", "interval_ms"))
    after: Position | None = None
    if epoch is not None and offset is not None:
        after = check_position(epoch, offset)
    elif epoch is not None or offset is not None:
        raise MalformedFrameError("position_epoch and position_offset go together: send both, or none")
    interval_ms = None if interval is None else check_interval(interval)
    return WatchRequest(StoreKey(STORE, order_id), after, interval_ms, order_id)


def _number(query: Mapping[str, list[str]], name: str) -> int | None:
    values = query.get(name)
    if values is None:
        return None
    if len(values) > 1 or WHOLE_NUMBER.fullmatch(values[0]) is None:
        raise MalformedFrameError(f"the query parameter {name} is not one whole number")
    return int(values[0])
