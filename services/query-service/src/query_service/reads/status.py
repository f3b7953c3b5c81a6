"""Maps errors to gRPC statuses and back; the only place that does."""

from typing import Any

import grpc

from query_service import errors
from query_service.errors import LookupFailedError
from statecast.query.v1 import query_pb2

ABSENCE = "statecast-absence-bin"
FRESHNESS = "statecast-freshness-bin"
NOT_SERVED = "statecast-not-served"  # tells a peer that said so from a peer that could not be reached
MISPLACED = "statecast-misplaced"  # tells a refusal from bounds, which another replica may meet

STATUS = {
    errors.InvalidRequestError: grpc.StatusCode.INVALID_ARGUMENT,
    errors.UnknownStoreError: grpc.StatusCode.NOT_FOUND,
    errors.AbsentError: grpc.StatusCode.NOT_FOUND,
    errors.NotServedError: grpc.StatusCode.UNAVAILABLE,
    errors.UnreachableError: grpc.StatusCode.UNAVAILABLE,
    errors.BoundsError: grpc.StatusCode.FAILED_PRECONDITION,
    errors.MisplacedKeyError: grpc.StatusCode.FAILED_PRECONDITION,
    errors.NoHistoryError: grpc.StatusCode.FAILED_PRECONDITION,
    errors.BeforeHistoryError: grpc.StatusCode.OUT_OF_RANGE,
    errors.TooLargeError: grpc.StatusCode.RESOURCE_EXHAUSTED,
    errors.OverloadedError: grpc.StatusCode.RESOURCE_EXHAUSTED,
    errors.CheckpointGoneError: grpc.StatusCode.NOT_FOUND,
    errors.CheckpointRefusedError: grpc.StatusCode.FAILED_PRECONDITION,
}


_MAX_TEXT = 500  # characters, of which one may take twelve bytes in a status


def status_of(failure: LookupFailedError) -> grpc.StatusCode:
    return next(STATUS[kind] for kind in type(failure).__mro__ if kind in STATUS)


def fill_key_error(error: query_pb2.KeyError, failure: LookupFailedError) -> None:
    error.code = status_of(failure).value[0]
    error.message = str(failure)


def ending_of(failure: LookupFailedError) -> tuple[grpc.StatusCode, str, tuple[tuple[str, str | bytes], ...]]:
    """Returns the status, the text and the trailing metadata that a call ends with that has failed.

    A caller's limit of metadata, 8 KB by default, lets the text through; names in it may be long.
    """
    text = str(failure)
    return status_of(failure), text if len(text) <= _MAX_TEXT else f"{text[:_MAX_TEXT]}…", trailing_metadata(failure)


def trailing_metadata(failure: LookupFailedError) -> tuple[tuple[str, str | bytes], ...]:
    match failure:
        case errors.AbsentError():
            return (ABSENCE, failure.absence.SerializeToString()), (FRESHNESS, failure.freshness.SerializeToString())
        case errors.NotServedError():
            return ((NOT_SERVED, "1"),)
        case errors.MisplacedKeyError():
            return ((MISPLACED, "1"),)
        case _:
            return ()


def failure_of(error: grpc.aio.AioRpcError, peer: str) -> LookupFailedError:
    """Returns the failure that a peer's call ended with, or errors.UnreachableError when the peer did not answer it."""
    trailing: dict[str, Any] = dict(error.trailing_metadata() or ())
    text = error.details() or ""
    match error.code():
        case grpc.StatusCode.NOT_FOUND if ABSENCE in trailing and FRESHNESS in trailing:
            freshness = query_pb2.Freshness.FromString(trailing[FRESHNESS])
            freshness.forwarded = True
            return errors.AbsentError(text, query_pb2.Absence.FromString(trailing[ABSENCE]), freshness)
        case grpc.StatusCode.INVALID_ARGUMENT:
            return errors.InvalidRequestError(text)
        case grpc.StatusCode.OUT_OF_RANGE:
            return errors.BeforeHistoryError(text)
        case grpc.StatusCode.FAILED_PRECONDITION:
            return errors.MisplacedKeyError(text) if MISPLACED in trailing else errors.BoundsError(text)
        case grpc.StatusCode.RESOURCE_EXHAUSTED:
            return errors.PeerOverloadedError(f"{peer}: {text}")
        case grpc.StatusCode.NOT_FOUND:
            return errors.NotServedError(f"{peer}: {text}")
        case grpc.StatusCode.UNAVAILABLE if NOT_SERVED in trailing:
            return errors.NotServedError(text)
        case grpc.StatusCode.DEADLINE_EXCEEDED:
            return errors.TimedOutError(f"{peer} does not answer in time")
        case code:
            return errors.UnreachableError(f"{peer} does not answer: {code.name} {text}")
