"""What servicers know of a call at the native server: those parts of grpc.aio's context that they use."""

import time
from collections.abc import Callable, Sequence
from typing import NoReturn, TypeAlias

import grpc

Metadata: TypeAlias = Sequence[tuple[str, str | bytes]]


class NativeContext:
    """One call, from its request until its response is handed over, or it is given up."""

    def __init__(self, metadata: Metadata, peer: str, left_s: float | None) -> None:
        """Begins with `left_s` until the deadline of the caller, None if it brought none."""
        self.began = time.perf_counter()
        self._metadata = metadata
        self._peer = peer
        self._deadline = None if left_s is None else time.monotonic() + left_s
        self._callbacks: list[Callable[[NativeContext], object]] = []
        self.code = grpc.StatusCode.UNKNOWN
        self.details = ""
        self.trailing_metadata: Metadata = ()

    def invocation_metadata(self) -> Metadata:
        """The metadata of the request; the value of a key that ends in `-bin` is bytes."""
        return self._metadata

    def peer(self) -> str:
        """Where the call comes from, such as `ipv4:127.0.0.1:5000`."""
        return self._peer

    def time_remaining(self) -> float | None:
        """The seconds until the caller's deadline; None if it brought none, as grpc.aio says it."""
        return None if self._deadline is None else max(0.0, self._deadline - time.monotonic())

    def add_done_callback(self, callback: "Callable[[NativeContext], object]") -> None:
        """Calls back at the end of the call, however it ends."""
        self._callbacks.append(callback)

    async def abort(self, code: grpc.StatusCode, details: str = "", trailing_metadata: Metadata = ()) -> NoReturn:
        """Ends the call with this status. Raises AbortError, which servicers let through."""
        self.code, self.details, self.trailing_metadata = code, details, trailing_metadata
        raise grpc.aio.AbortError

    def end(self) -> None:
        """Calls all back; for the server, once."""
        for callback in self._callbacks:
            callback(self)
