"""A client of `/v1/stream` for the edge's own tests. It follows the rules of the protocol's page."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from google.protobuf import json_format
from websockets.asyncio.client import ClientConnection

from statecast.push.v2.push_pb2 import ClientFrame, ServerFrame
from testkit.waiting import scaled
from testkit.ws_edge.edge import RunningEdge

BINARY = "statecast.push.v2+proto"


class StreamClient:
    """Keeps rows and a token for each watch and path; from binary frames, it keeps encoded rows."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket
        self.rows: dict[tuple[int, str], dict[str, Any]] = {}
        self.tokens: dict[tuple[int, str], str] = {}
        self.current: set[int] = set()
        self.ended: dict[int, dict[str, Any]] = {}
        self.frames: list[dict[str, Any]] = []
        self._waiting: dict[tuple[int, str], list[dict[str, Any]]] = {}
        self._anew: set[tuple[int, str]] = set()
        self._key_field: dict[tuple[int, str], str] = {}

    @property
    def is_binary(self) -> bool:
        """Whether it speaks the binary form."""
        return self.socket.subprotocol == BINARY

    async def say(self, **frame: Any) -> None:
        """Sends a frame."""
        encoded = json_format.ParseDict(frame, ClientFrame()).SerializeToString() if self.is_binary else None
        await self.socket.send(json.dumps(frame) if encoded is None else encoded)

    async def next(self) -> dict[str, Any]:
        """Receives a frame, and takes it."""
        async with asyncio.timeout(scaled(30)):
            content = await self.socket.recv()
        frame: dict[str, Any] = json.loads(content) if isinstance(content, str) else _document(content)
        self.frames.append(frame)
        if "id" in frame:
            self._take((frame["id"], "/".join(frame.get("path", []))), frame)
        return frame

    async def begin(self, watch: Mapping[str, Any]) -> None:
        """Watches, and receives frames until the watch is complete."""
        await self.say(watch=[watch])
        await self.until_current(watch["id"])

    async def until_current(self, watch_id: int) -> None:
        """Receives frames until the watch is complete."""
        while watch_id not in self.current:
            await self.next()

    def _take(self, place: tuple[int, str], frame: dict[str, Any]) -> None:
        waiting = self._waiting.setdefault(place, [])
        if "watching" in frame:
            self._key_field[place] = frame["watching"].get("key_field", "")
            waiting.clear()
            if not frame["watching"].get("resumed"):
                self._anew.add(place)
        for row in frame.get("rows", ()):
            waiting.append(row)
            if row.get("left"):
                self._end_below(place, row.get("key", ""))
        if "token" in frame:
            self._apply(place)
            self.tokens[place] = frame["token"]
        if frame.get("current"):
            self.current.add(frame["id"])
        if "ended" in frame:
            if place[1]:
                self._drop(place)
            else:
                self.ended[frame["id"]] = frame["ended"]

    def _apply(self, place: tuple[int, str]) -> None:
        if place in self._anew:
            self._anew.discard(place)
            self.rows[place] = {}
        held = self.rows.setdefault(place, {})
        for row in self._waiting[place]:
            key = row.get("key", "")
            if "encoded" in row:
                held[key] = row["encoded"]
            elif "row" in row:
                field = self._key_field[place]
                held[row["row"][field] if field and not key else key] = row["row"]
            elif "delta" in row:
                merged = held[key] | row["delta"]
                held[key] = {name: value for name, value in merged.items() if value is not None}
            else:
                held.pop(key, None)
        self._waiting[place].clear()

    def _end_below(self, place: tuple[int, str], key: str) -> None:
        self._drop((place[0], f"{place[1]}/{key}".strip("/")))

    def _drop(self, place: tuple[int, str]) -> None:
        for other in [each for each in self.rows if each == place or f"{each[1]}/".startswith(f"{place[1]}/")]:
            if other[0] == place[0]:
                del self.rows[other]
                self.tokens.pop(other, None)


@asynccontextmanager
async def stream_client(edge: RunningEdge, **options: Any) -> AsyncIterator[StreamClient]:
    """Yields a client that has received hello; the options are those of `RunningEdge.socket`."""
    async with edge.socket("/v1/stream", **options) as socket:
        client = StreamClient(socket)
        assert "hello" in await client.next()
        yield client


def _document(content: bytes) -> dict[str, Any]:
    return json_format.MessageToDict(ServerFrame.FromString(content), preserving_proto_field_name=True)
