"""The frames of `/v1/stream`: how a codec reads and writes them, and the codec of push.v2 in JSON and binary."""

import struct
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

from typing_extensions import override

from statecast.push.v2.push_pb2 import Ended, ServerFrame, Watching
from ws_edge.codec import bodies
from ws_edge.codec.bodies import View, json_bytes
from ws_edge.codec.requests import ClientRequest, read_binary, read_json
from ws_edge.errors import EdgeError, MalformedFrameError
from ws_edge.model.documents import message_document
from ws_edge.model.states import Path, StoreKey
from ws_edge.model.stores import FindStore
from ws_edge.watches.subscription import RowNews
from ws_edge.watches.token import varint

T = TypeVar("T")

TEXT, BINARY = 0x81, 0x82
"""The first byte of a message in one frame."""

FRAMES = "ws_edge.frames"
"""Where an ASGI `websocket.send` event has its frames, which leave in one write."""

HAS_READ = "ws_edge.has_read"
"""Where the scope of a socket has the function that says whether its client reads, as EdgeSocketProtocol.has_read."""

BINARY_SUBPROTOCOL = "statecast.push.v2+proto"
JSON_SUBPROTOCOL = "statecast.push.v2+json"
"""The form for clients that offer neither. It has a name for browsers, which must get a subprotocol that they offer."""

FILL_BYTES = 16_384
"""A frame of rows is sent when it has so many: 40 rows, which take about 1 ms."""

ENVELOPE_BYTES = 16_384
"""Room in the largest frame for all but its last row."""

ROWS_TAG = bytes([ServerFrame.DESCRIPTOR.fields_by_name["rows"].number << 3 | 2])


class PlaceFrame(NamedTuple):
    """A frame about a place. Its rows are already encoded."""

    id: int
    path: Path = ()
    watching: Watching | None = None
    rows: Sequence[bytes] = ()
    token: str = ""
    current: bool = False
    ended: Ended | None = None


def wire(payload: bytes, first: int = TEXT) -> bytes:
    """Returns a frame as it goes over the wire. A server's is neither masked nor, here, compressed.

    So sockets with the same message share its bytes.
    """
    size = len(payload)
    if size < 126:
        return struct.pack("!BB", first, size) + payload
    return (struct.pack("!BBH", first, 126, size) if size < 65_536 else struct.pack("!BBQ", first, 127, size)) + payload


def parts_of(items: Iterable[T], max_bytes: int, size_of: Callable[[T], int]) -> list[list[T]]:
    """Returns the items in parts that each fit into a frame, at least one; a larger item is a part of its own."""
    parts, size = [list[T]()], 0
    for item in items:
        own = size_of(item)
        if parts[-1] and size + own > max_bytes - ENVELOPE_BYTES:
            parts.append([])
            size = 0
        parts[-1].append(item)
        size += own + 1
    return parts


class Sink(Protocol):
    """The writer of a socket."""

    @property
    def is_idle(self) -> bool:
        """Whether nothing is being sent."""

    def put(self, frame: bytes | None, /) -> None:
        """Sends a frame about the socket, before all rows that wait; None is nothing."""


class Codec(ABC):
    """A way to read and write the frames of a socket."""

    subprotocol: str | None = None

    def attach(self, sink: Sink) -> None:  # noqa: B027  most codecs write when they are asked alone
        """Begins the socket: the codec may put frames of its own."""

    def detach(self) -> None:  # noqa: B027
        """Ends the socket: the codec puts no more frames, and forgets the sink."""

    @abstractmethod
    def read(self, event: Mapping[str, Any], find: FindStore) -> ClientRequest:
        """Reads an ASGI `websocket.receive` event. Raises MalformedFrameError."""

    @abstractmethod
    def body(self, news: RowNews, view: View) -> bytes | None:
        """Returns an encoded row; None when nothing has changed that the view shows."""

    @abstractmethod
    def error_body(self, key: StoreKey, error: EdgeError) -> bytes:
        """Returns an encoded row that says why the row cannot be shown."""

    @abstractmethod
    def place_frames(self, frame: PlaceFrame) -> list[bytes]:
        """Returns the frames about a place, as `wire` makes them."""

    @abstractmethod
    def socket_frame(self, frame: ServerFrame) -> bytes | None:
        """Encodes a frame about the socket; None when this codec has no such frame."""


class StreamCodec(Codec):
    """The codec of push.v2. One serves any number of sockets."""

    def __init__(self, *, binary: bool) -> None:
        self.binary = binary
        self.subprotocol = BINARY_SUBPROTOCOL if binary else JSON_SUBPROTOCOL

    @override
    def read(self, event: Mapping[str, Any], find: FindStore) -> ClientRequest:
        text, content = event.get("text"), event.get("bytes")
        if not self.binary:
            return read_json(text if content is None else content, find)  # type: ignore[arg-type]  # one is there
        if content is None:
            raise MalformedFrameError(f"with {BINARY_SUBPROTOCOL} frames are binary: this one is text")
        return read_binary(content, find)

    @override
    def body(self, news: RowNews, view: View) -> bytes | None:
        return bodies.binary_body(news, view) if self.binary else bodies.json_body(news, view)

    @override
    def error_body(self, key: StoreKey, error: EdgeError) -> bytes:
        return bodies.binary_error(key, error) if self.binary else bodies.json_error(key, error)

    @override
    def place_frames(self, frame: PlaceFrame) -> list[bytes]:
        return [wire(_binary_frame(frame), BINARY) if self.binary else wire(_json_frame(frame))]

    @override
    def socket_frame(self, frame: ServerFrame) -> bytes | None:
        if self.binary:
            return wire(frame.SerializeToString(), BINARY)
        return wire(json_bytes(message_document(frame, has_defaults=False)))


def _json_frame(frame: PlaceFrame) -> bytes:
    parts = [b'"id":%d' % frame.id]
    if frame.path:
        parts.append(b'"path":%b' % json_bytes(frame.path))
    if frame.watching is not None:
        parts.append(b'"watching":%b' % json_bytes(message_document(frame.watching, has_defaults=False)))
    if frame.rows:
        parts.append(b'"rows":[%b]' % b",".join(frame.rows))
    if frame.token:
        parts.append(b'"token":"%b"' % frame.token.encode())
    if frame.current:
        parts.append(b'"current":true')
    if frame.ended is not None:
        parts.append(b'"ended":%b' % json_bytes(message_document(frame.ended, has_defaults=False)))
    return b"{%b}" % b",".join(parts)


def _binary_frame(frame: PlaceFrame) -> bytes:
    head = ServerFrame(id=frame.id, path=frame.path, watching=frame.watching).SerializeToString()
    rows = b"".join(ROWS_TAG + varint(len(body)) + body for body in frame.rows)
    return head + rows + ServerFrame(token=frame.token, current=frame.current, ended=frame.ended).SerializeToString()
