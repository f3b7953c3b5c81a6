"""The memory that responses of the native server take until their clients have read them."""

import asyncio
from collections.abc import Callable
from typing import Any

from pygrpc_native import NativeGrpcFront

from query_service.serving.call_limits import InFlight

_INTERVAL_S = 0.1
_MAX_UNCOUNTED = 1 << 20


class UnreadResponses:
    """Counts into InFlight what the native server holds of responses, until their clients read them or go away.

    The library does not tell which response has gone, only how many bytes have gone since it was started. So InFlight
    is right a tenth of a second later, or a megabyte of responses later.
    """

    def __init__(self, front: NativeGrpcFront, in_flight: InFlight) -> None:
        """`front` must have been made with `metrics=True`. Needs a running event loop."""
        self._front = front
        self._in_flight = in_flight
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._handed_over = 0  # bytes, since the start
        self._counted_at = 0  # what had been handed over as of the last count
        self._held = 0  # as of the last count

    def add(self, size: int) -> None:
        """Notes a response that was handed over to the library."""
        self._handed_over += size
        if self._handed_over - self._counted_at > _MAX_UNCOUNTED:
            self.count()
        elif self._timer is None:
            self._timer = self._loop.call_later(_INTERVAL_S, self._count_again)

    def count(self) -> None:
        """Brings InFlight up to date."""
        held = self._handed_over - self._sum(lambda status: status["sent"]["sum"])
        self._in_flight.add(held - self._held)
        self._held, self._counted_at = held, self._handed_over

    def open_calls(self) -> int:
        """Returns how many calls are not over: they are not answered, or their responses not read."""
        started: int = sum(method["started"] for method in self._methods())
        return started - self._sum(lambda status: status["count"])

    def close(self) -> None:
        """Ends the counting, once all connections are closed: nothing is held from then on."""
        if self._timer:
            self._timer.cancel()
        self._in_flight.add(-self._held)

    def _count_again(self) -> None:
        self.count()
        self._timer = self._loop.call_later(_INTERVAL_S, self._count_again) if self._held else None

    def _sum(self, number: Callable[[dict[str, Any]], int]) -> int:
        """Returns the sum of a number over all methods and statuses."""
        return sum(number(status) for method in self._methods() for status in method["status"].values())

    def _methods(self) -> list[dict[str, Any]]:
        return list((self._front.metrics() or {"methods": {}})["methods"].values())
