"""Which socket an address asks for: the codec that is used there, and what the socket begins with."""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import parse_qs

from ws_edge.codec.frames import FrameCodec, WatchRequest, watch_request
from ws_edge.codec.order_codec import STORE, OrderCodec
from ws_edge.codec.stream_codec import BINARY_SUBPROTOCOL, StreamCodec
from ws_edge.errors import MalformedFrameError, UnknownPathError
from ws_edge.states import StoreKey
from ws_edge.stores import Stores, check_key_part

ORDERS = "/update/orders"
STREAM = "/v1/stream"
TICKET_STREAM = "/v1/tickets/stream"
"""The same for browsers, whose sockets cannot send headers: a ticket in the query names the consumer."""

CHANNEL = re.compile(r"/v1/channels/([^/]+)/stream")
WHOLE_NUMBER = re.compile(r"-?[0-9]{1,19}")


class Route(NamedTuple):
    """What a socket's address and subprotocol ask for."""

    codec: FrameCodec
    subprotocol: str | None = None
    first: WatchRequest | None = None
    """A request that the address makes."""
    channel: str | None = None
    """The channel to which the socket is to be attached."""


class Routes:
    """All sockets that there are."""

    def __init__(self, stores: Stores) -> None:
        self._orders = OrderCodec()
        self._stream = StreamCodec(stores, binary=False)
        self._binary = StreamCodec(stores, binary=True)

    def find(self, scope: Mapping[str, Any]) -> Route:
        """Reads an ASGI scope. Raises UnknownPathError, or MalformedFrameError for wrong parameters."""
        path = scope["path"]
        if path == ORDERS:
            return Route(self._orders)
        if path.startswith(ORDERS + "/") and len(path) > len(ORDERS) + 1:
            return Route(self._orders, first=_path_request(path[len(ORDERS) + 1 :], scope["query_string"]))
        channel = CHANNEL.fullmatch(path)
        if channel is None and path not in (STREAM, TICKET_STREAM):
            paths = f"{ORDERS}, {STREAM} and /v1/channels/CHANNEL/stream"
            raise UnknownPathError(f"there is no socket at {path[:200]}: there are {paths}")
        binary = BINARY_SUBPROTOCOL in scope["subprotocols"]
        codec = self._binary if binary else self._stream
        return Route(codec, BINARY_SUBPROTOCOL if binary else None, channel=channel[1] if channel else None)


def _path_request(order_id: str, query_string: bytes) -> WatchRequest:
    """The subscription that an address makes; raises MalformedFrameError."""
    query = parse_qs(query_string.decode("latin-1"), keep_blank_values=True)
    check_key_part("order_id", order_id)
    epoch, offset, interval = (_number(query, name) for name in ("position_epoch", "position_offset", "interval_ms"))
    if (epoch is None) != (offset is None):
        raise MalformedFrameError("position_epoch and position_offset go together: send both, or none")
    position = None if epoch is None or offset is None else (epoch, offset)
    return watch_request(StoreKey(STORE, order_id), position, interval, order_id)


def _number(query: Mapping[str, list[str]], name: str) -> int | None:
    values = query.get(name)
    if values is None:
        return None
    if len(values) > 1 or WHOLE_NUMBER.fullmatch(values[0]) is None:
        raise MalformedFrameError(f"the query parameter {name} is not one whole number")
    return int(values[0])
