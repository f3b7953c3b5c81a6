"""The memory that responses of the native server take until their clients have read them."""

import asyncio
from collections.abc import Callable
from typing import Any

from pygrpc_native import NativeGrpcFront

from query_service.server.limits import MIN_CALL_BYTES, InFlight

_INTERVAL_S = 0.1
_MAX_UNCOUNTED = 1 << 20


class UnreadResponses:
    """Counts into InFlight the responses that the native server holds until their clients read them or go away.

    The library tells of no single response when it has gone. It tells how many calls are open, exactly, and how many
    bytes of responses have gone; a few never go, as their client left at the moment of the response. So missing
    bytes are held only as far as so many calls can hold them, and are lost once no call is left that could.
    """

    def __init__(self, front: NativeGrpcFront, in_flight: InFlight, in_work: Callable[[], int]) -> None:
        """`front` must have been made with `metrics=True`; `in_work` says how many of its calls await a response."""
        self._front = front
        self._in_flight = in_flight
        self._in_work = in_work
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._handed_over = 0  # bytes, since the start
        self._lost = 0  # of these
        self._largest = 0
        self._counted_at = 0  # bytes handed over as of the last count
        self._held = 0  # as of the last count

    def add(self, size: int) -> None:
        """Notes a response that was handed over to the library."""
        self._handed_over += size
        self._largest = max(self._largest, size)
        if self._handed_over - self._counted_at > _MAX_UNCOUNTED:
            self.count()
        elif self._timer is None:
            self._timer = self._loop.call_later(_INTERVAL_S, self._count_again)

    def count(self) -> None:
        """Brings InFlight up to date, which is wrong by a tenth of a second or a megabyte of responses in between."""
        open_calls, gone = self._now()
        unread = max(0, open_calls - self._in_work())
        missing = self._handed_over - self._lost - gone
        if unread == 0 or missing < 0:
            self._lost += missing
            missing = self._largest = 0
        held = min(missing, unread * self._largest) + unread * MIN_CALL_BYTES
        self._in_flight.add(held - self._held)
        self._held, self._counted_at = held, self._handed_over

    def open_calls(self) -> int:
        """Returns how many calls are not over: they are not answered, or their responses not read."""
        return self._now()[0]

    def close(self) -> None:
        """Ends the counting, once all connections are closed: nothing is held from then on."""
        if self._timer:
            self._timer.cancel()
        self._in_flight.add(-self._held)

    def _count_again(self) -> None:
        self.count()
        self._timer = self._loop.call_later(_INTERVAL_S, self._count_again) if self._held else None

    def _now(self) -> tuple[int, int]:
        """Returns the open calls, and the bytes of the responses of all others: some 0.1 ms of work."""
        metrics = self._front.metrics() or {"methods": {}}
        methods: list[dict[str, Any]] = list(metrics["methods"].values())
        ended: list[dict[str, Any]] = [status for method in methods for status in method["status"].values()]
        started: int = sum(method["started"] for method in methods)
        gone: int = sum(status["sent"]["sum"] for status in ended)
        return started - sum(status["count"] for status in ended), gone
