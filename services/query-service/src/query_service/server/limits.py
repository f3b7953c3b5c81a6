"""The limits of one call: time until its deadline, memory while it is in work, and the size of a batch's response."""

from collections.abc import Callable, Iterable
from itertools import chain
from typing import Any, NamedTuple, TypeAlias

import grpc

from query_service.errors import OverloadedError, TooLargeError
from query_service.metrics import Metrics
from query_service.reads.status import fill_key_error
from statecast.query.v1 import query_pb2, query_service_pb2

MIN_CALL_BYTES = 1024  # the cost of a call beside its messages
DEFAULT_RESPONSE_BYTES = 4 << 20  # the default limit of gRPC's clients
QUERY_BYTES = 700  # the measured cost of a key or range of a batch beside its message; a row of a page counts as one
_MARGIN_SHARE = 0.1
_MAX_MARGIN_S = 0.1

Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"


class InFlight:
    """The bytes of the requests in work, and of the responses not yet taken: at most `max_bytes`, over all calls."""

    def __init__(self, max_bytes: int, metrics: Metrics) -> None:
        self._max_bytes = max_bytes
        self.room = max_bytes
        """How many bytes more could be held now; below 0 when a server has taken over more than that."""
        metrics.in_flight_bytes.set_function(lambda: max_bytes - self.room)

    def check_room(self, size: int) -> None:
        """Raises OverloadedError unless so many bytes could be held now; it says whether they ever can be."""
        if size > self._max_bytes:
            limit = f"MAX_IN_FLIGHT_MB allows {self._max_bytes} to all calls"
            raise OverloadedError(f"the call needs {size} bytes of memory, {limit}: ask for less at a time")
        if size > self.room:
            raise OverloadedError(
                "the instance is overloaded: its calls hold all the memory that they may use: ask again later"
            )

    def hold(self, call: Context, size: int) -> None:
        """Holds so many bytes until the call is over. Raises OverloadedError when they are too many."""
        self.check_room(size)
        self.add(size)
        call.add_done_callback(lambda _: self.add(-size))  # type: ignore[arg-type]  # the stub asks for a class

    def add(self, size: int) -> None:
        """Counts bytes that are in work, or responses that a server has taken over, or no more when below 0."""
        self.room -= size


class CallLimits(NamedTuple):
    """The limits of every call: a call without a deadline gets `timeout_s`, and none gets more than `max_s`."""

    in_flight: InFlight
    timeout_s: float
    max_s: float
    monotonic: Callable[[], float]

    def deadline(self, left_s: float | None, wait_s: float = 0.0) -> float:
        """Returns the time by which to answer, `wait_s` included: a little early, so the caller gets the reason.

        `left_s` is the time until the caller's deadline; None if it brought none.
        """
        max_s = self.max_s + wait_s
        if left_s is None:
            left_s = self.timeout_s + wait_s
        elif left_s > _MAX_MARGIN_S / _MARGIN_SHARE:  # as nearly always, and each get pays for it
            left_s -= _MAX_MARGIN_S
        elif left_s > 0:
            left_s -= left_s * _MARGIN_SHARE
        return self.monotonic() + (left_s if left_s < max_s else max_s)  # noqa: FURB136  half the time of min()


def response_limit(request: query_service_pb2.BatchGetStatesRequest | query_service_pb2.ListShardsRequest) -> int:
    """Returns the size of the largest response that the caller takes."""
    return request.max_response_bytes or DEFAULT_RESPONSE_BYTES


def capped(encoded: bytes, max_bytes: int) -> bytes:
    """Returns a BatchGetStatesResponse that is small enough: results that are too large are replaced by errors.

    Ranges are replaced before keys, and from the last on. One that would not fit alone either tells its size.
    """
    if len(encoded) <= max_bytes:
        return encoded
    response, size = query_service_pb2.BatchGetStatesResponse.FromString(encoded), len(encoded)
    results: Iterable[query_pb2.KeyResult | query_pb2.RangeResult]
    results = chain(reversed(response.ranges), reversed(response.results))
    is_alone = len(response.ranges) + len(response.results) == 1
    for result in results:
        if size <= max_bytes:
            break
        index, result_bytes = result.index, result.ByteSize()
        result.Clear()
        result.index = index
        failure = TooLargeError()
        if is_alone or result_bytes > max_bytes:
            way_out = "accept more by max_response_bytes, which MAX_ANSWER_BYTES bounds"
            failure = TooLargeError(f"it has {result_bytes} bytes, and the response may have {max_bytes}: {way_out}")
        fill_key_error(result.error, failure)
        size += result.ByteSize() - result_bytes
    return response.SerializeToString()
