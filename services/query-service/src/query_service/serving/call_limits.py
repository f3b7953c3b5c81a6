"""The limits of one call: time until its deadline, memory while it is in work, and the size of a batch's response."""

from collections.abc import Awaitable, Callable, Iterable
from functools import wraps
from itertools import chain
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar

import grpc
from google.protobuf.message import DecodeError, Message

from query_service.errors import InvalidRequestError, LookupFailedError, OverloadedError, TooLargeError
from query_service.metrics import Metrics
from query_service.serving.grpc_status import fill_key_error, status_of, trailing_metadata
from statecast.query.v1 import query_pb2, query_service_pb2

MIN_CALL_BYTES = 1024  # what a call costs beside its messages
DEFAULT_RESPONSE_BYTES = 4 << 20  # what gRPC's clients take unless they are made otherwise
QUERY_BYTES = 700  # what a key or range of a batch costs beside its message, as measured
_MAX_TEXT = 500  # characters, of which one may take twelve bytes in a status
_MARGIN_SHARE = 0.1
_MAX_MARGIN_S = 0.1
_TOO_LARGE = TooLargeError("the answer would be too large: ask for fewer keys and ranges at a time")

Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"


class InFlight:
    """The bytes of the requests in work, and of the responses not yet taken: at most `max_bytes`, over all calls."""

    def __init__(self, max_bytes: int, metrics: Metrics) -> None:
        self._max_bytes = max_bytes
        self._bytes = 0
        metrics.in_flight_bytes.set_function(lambda: self._bytes)

    def has_room(self, size: int) -> bool:
        """Whether so many bytes could be held now."""
        return self._bytes + size <= self._max_bytes

    def check_room(self, size: int) -> None:
        """Raises OverloadedError unless so many bytes could be held now."""
        if not self.has_room(size):
            raise OverloadedError("the instance is overloaded: its calls hold all the memory they may: ask again later")

    def hold(self, call: Context, size: int) -> None:
        """Holds so many bytes until the call is over. Raises OverloadedError when they are too many."""
        self.check_room(size)
        self.add(size)
        call.add_done_callback(lambda _: self.add(-size))  # type: ignore[arg-type]  # the stub asks for a class

    def hold_queries(self, call: Context, request: query_service_pb2.BatchGetStatesRequest) -> None:
        """Holds, as `hold` does, the bytes that the keys and ranges of a batch take while they are looked up."""
        self.hold(call, QUERY_BYTES * (len(request.keys) + len(request.ranges)))

    def add(self, size: int) -> None:
        """Counts bytes that no call holds, such as responses that a server has taken over, or no more when below 0."""
        self._bytes += size


class CallLimits(NamedTuple):
    """The limits of every call: a call without a deadline gets `timeout_s`, and none gets more than `max_s`."""

    in_flight: InFlight
    timeout_s: float
    max_s: float
    response_bytes: int
    monotonic: Callable[[], float]

    def deadline_of(self, call: Context, wait_s: float = 0.0) -> float:
        """Returns the time by which to answer, `wait_s` included: a little early, so the caller gets the reason."""
        return self.monotonic() + self.seconds(call.time_remaining(), wait_s)

    def seconds(self, left_s: float | None, wait_s: float = 0.0) -> float:
        """Returns how long to work on a call. `left_s` is the time until its deadline; None if it brought none."""
        if left_s is None:
            left_s = self.timeout_s + wait_s
        else:
            left_s -= min(_MAX_MARGIN_S, max(left_s, 0.0) * _MARGIN_SHARE)
        return min(left_s, self.max_s + wait_s)


class Limited(Protocol):
    limits: CallLimits


_Servicer = TypeVar("_Servicer", bound=Limited)
_Request = TypeVar("_Request", bound=Message)
_Response = TypeVar("_Response", bound=Message)
_Method = Callable[[_Servicer, _Request, Context], Awaitable[_Response]]


def parsed(kind: type[_Request], encoded: bytes) -> _Request | DecodeError:
    """Returns the message, or why there is none, which `served` tells the caller: gRPC would log it as a defect."""
    try:
        return kind.FromString(encoded)
    except DecodeError as error:
        return error


def served(method: _Method[_Servicer, _Request, _Response]) -> _Method[_Servicer, _Request, _Response]:
    """Holds the bytes of a call's request and response while it lasts; a LookupFailedError ends it with its status."""

    @wraps(method)
    async def respond(servicer: _Servicer, request: _Request | DecodeError, context: Context) -> _Response:
        in_flight = servicer.limits.in_flight
        try:
            if isinstance(request, DecodeError):
                raise InvalidRequestError("the request is not the message of this call")
            in_flight.hold(context, request.ByteSize() + MIN_CALL_BYTES)
            response = await method(servicer, request, context)
            in_flight.hold(context, response.ByteSize())
        except LookupFailedError as failure:
            await context.abort(*ending_of(failure))
        return response

    return respond


def ending_of(failure: LookupFailedError) -> tuple[grpc.StatusCode, str, tuple[tuple[str, str | bytes], ...]]:
    """Returns the status, the text and the trailing metadata that a call ends with that has failed."""
    return status_of(failure), _shortened(str(failure)), trailing_metadata(failure)


def _shortened(text: str) -> str:
    """Returns a text that a caller's limit of metadata, 8 KB by default, lets through; names in it may be long."""
    return text if len(text) <= _MAX_TEXT else f"{text[:_MAX_TEXT]}…"


def response_limit(request: query_service_pb2.BatchGetStatesRequest, max_bytes: float) -> int:
    """Returns the size of the largest response to a batch: as large as the caller takes, and `max_bytes` at most."""
    return int(min(max_bytes, request.max_response_bytes or DEFAULT_RESPONSE_BYTES))


def cap(response: query_service_pb2.BatchGetStatesResponse, max_bytes: int) -> None:
    """Replaces results by errors, ranges before keys and from the last on, until the response is small enough."""
    size = response.ByteSize()
    results: Iterable[query_pb2.KeyResult | query_pb2.RangeResult]
    results = chain(reversed(response.ranges), reversed(response.results))
    for result in results:
        if size <= max_bytes:
            return
        size -= result.ByteSize()
        index = result.index
        result.Clear()
        result.index = index
        fill_key_error(result.error, _TOO_LARGE)
        size += result.ByteSize()
