"""Sends the frames of one socket that have no rows: ends of watches, errors, warnings and news of the socket."""

from dataclasses import dataclass, field
from typing import Any

from statecast.push.v2.push_pb2 import Ended, Problem, ServerFrame
from ws_edge.codec.frames import Codec, PlaceFrame
from ws_edge.errors import EdgeError
from ws_edge.metrics import Metrics
from ws_edge.model.states import Path
from ws_edge.session.outbox import SocketWriter

MAX_WARNINGS = 16


@dataclass(slots=True, eq=False)
class Replies:
    """Frames about the socket, and the last frames of watches. They go before all waiting rows."""

    codec: Codec
    writer: SocketWriter
    metrics: Metrics
    _warned: frozenset[str] = field(default=frozenset(), init=False)

    def say(self, **content: Any) -> None:
        """Sends a frame about the socket, with these fields."""
        self.writer.put(self.codec.socket_frame(ServerFrame(**content)))

    def ended(
        self, watch_id: int, path: Path = (), error: EdgeError | None = None, retry_ms: int | None = None
    ) -> None:
        """Reports the end of a watch, or of one of its places: as requested, or by an error."""
        ended = Ended()
        if error is not None:
            self.metrics.errors.labels(error.code).inc()
            ended = Ended(code=error.code, message=str(error), retry_ms=retry_ms)
        for frame in self.codec.place_frames(PlaceFrame(watch_id, path, ended=ended)):
            self.writer.put(frame)

    def error(self, error: EdgeError, retry_ms: int | None = None) -> None:
        """Reports an error in a frame of the client, or in a part of one."""
        self.metrics.errors.labels(error.code).inc()
        self.say(error=Problem(code=error.code, message=str(error), retry_ms=retry_ms))

    def warn(self, name: str, code: str, text: str) -> None:
        """Reports that something was ignored: once for each name, and at most MAX_WARNINGS times."""
        if name not in self._warned and len(self._warned) < MAX_WARNINGS:
            self._warned |= {name}
            self.say(warning=Problem(code=code, message=text))
