"""The one place where errors and gRPC statuses are turned into each other."""

from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Any, TypeAlias, TypeVar

import grpc
import structlog

from query_service.errors import (
    AbsentError,
    BeforeHistoryError,
    BoundsError,
    InvalidRequestError,
    LookupFailedError,
    NoHistoryError,
    NotServedError,
    OverloadedError,
    TooLargeError,
    UnknownStoreError,
    UnreachableError,
)
from statecast.query.v1 import query_pb2

ABSENCE = "statecast-absence-bin"
FRESHNESS = "statecast-freshness-bin"
NOT_SERVED = "statecast-not-served"  # tells a peer that said so from a peer that could not be reached

_STATUS = {
    InvalidRequestError: grpc.StatusCode.INVALID_ARGUMENT,
    UnknownStoreError: grpc.StatusCode.NOT_FOUND,
    AbsentError: grpc.StatusCode.NOT_FOUND,
    NotServedError: grpc.StatusCode.UNAVAILABLE,
    UnreachableError: grpc.StatusCode.UNAVAILABLE,
    BoundsError: grpc.StatusCode.FAILED_PRECONDITION,
    NoHistoryError: grpc.StatusCode.FAILED_PRECONDITION,
    BeforeHistoryError: grpc.StatusCode.OUT_OF_RANGE,
    TooLargeError: grpc.StatusCode.RESOURCE_EXHAUSTED,
    OverloadedError: grpc.StatusCode.RESOURCE_EXHAUSTED,
}

_Servicer = TypeVar("_Servicer")
_Request = TypeVar("_Request")
_Answer = TypeVar("_Answer")
_Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"
_Method = Callable[[_Servicer, _Request, _Context], Awaitable[_Answer]]

_log = structlog.get_logger()


def status_of(failure: LookupFailedError) -> grpc.StatusCode:
    """Returns the status that a call fails with."""
    return next(_STATUS[kind] for kind in type(failure).__mro__ if kind in _STATUS)


def fill_key_error(error: query_pb2.KeyError, failure: LookupFailedError) -> None:
    """Fills the result of a key that failed in a batch."""
    error.code = status_of(failure).value[0]
    error.message = str(failure)


def with_status(method: _Method[_Servicer, _Request, _Answer]) -> _Method[_Servicer, _Request, _Answer]:
    """Makes a method of a servicer end its call with the status of the LookupFailedError that it raises."""

    @wraps(method)
    async def answer(servicer: _Servicer, request: _Request, context: _Context) -> _Answer:
        try:
            return await method(servicer, request, context)
        except LookupFailedError as failure:
            await context.abort(status_of(failure), str(failure), _trailing_metadata(failure))

    return answer


def failure_of(error: grpc.aio.AioRpcError, peer: str) -> LookupFailedError:
    """Returns the failure that a peer's call ended with, or UnreachableError when the peer did not answer it."""
    trailing = dict(error.trailing_metadata() or ())
    text = error.details() or ""
    match error.code():
        case grpc.StatusCode.NOT_FOUND if ABSENCE in trailing and FRESHNESS in trailing:
            absence = query_pb2.Absence.FromString(_encoded(trailing[ABSENCE]))
            return AbsentError(text, absence, query_pb2.Freshness.FromString(_encoded(trailing[FRESHNESS])))
        case grpc.StatusCode.INVALID_ARGUMENT:
            return InvalidRequestError(text)
        case grpc.StatusCode.OUT_OF_RANGE:
            return BeforeHistoryError(text)
        case grpc.StatusCode.FAILED_PRECONDITION:
            return BoundsError(text)
        case grpc.StatusCode.RESOURCE_EXHAUSTED | grpc.StatusCode.NOT_FOUND:
            return NotServedError(f"{peer}: {text}")
        case grpc.StatusCode.UNAVAILABLE if NOT_SERVED in trailing:
            return NotServedError(text)
        case code:
            return UnreachableError(f"{peer} does not answer: {code.name} {text}")


def _encoded(value: str | bytes) -> bytes:
    return value if isinstance(value, bytes) else value.encode()


def _trailing_metadata(failure: LookupFailedError) -> tuple[tuple[str, str | bytes], ...]:
    if isinstance(failure, AbsentError):
        return (ABSENCE, failure.absence.SerializeToString()), (FRESHNESS, failure.freshness.SerializeToString())
    if isinstance(failure, NotServedError):
        return ((NOT_SERVED, "1"),)
    return ()
