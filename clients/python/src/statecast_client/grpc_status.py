"""The one place where gRPC statuses become errors."""

import grpc

from statecast.query.v1 import query_pb2
from statecast_client.errors import (
    AbsentError,
    BehindError,
    InvalidError,
    OverloadedError,
    StatecastError,
    UnavailableError,
    UnknownStoreError,
)

ABSENCE = "statecast-absence-bin"
FRESHNESS = "statecast-freshness-bin"

_ERRORS: dict[grpc.StatusCode, type[StatecastError]] = {
    grpc.StatusCode.NOT_FOUND: UnknownStoreError,
    grpc.StatusCode.INVALID_ARGUMENT: InvalidError,
    grpc.StatusCode.OUT_OF_RANGE: InvalidError,
    grpc.StatusCode.UNIMPLEMENTED: InvalidError,
    grpc.StatusCode.UNAUTHENTICATED: InvalidError,
    grpc.StatusCode.PERMISSION_DENIED: InvalidError,
    grpc.StatusCode.FAILED_PRECONDITION: BehindError,
    grpc.StatusCode.RESOURCE_EXHAUSTED: OverloadedError,
}
_BY_NUMBER = {code.value[0]: code for code in grpc.StatusCode}


def error_of(failure: grpc.aio.AioRpcError, address: str) -> StatecastError:
    """Returns the error of a call that failed at an address."""
    trailing = dict(failure.trailing_metadata() or ())
    text = failure.details() or failure.code().name
    absence, freshness = trailing.get(ABSENCE), trailing.get(FRESHNESS)
    if isinstance(absence, bytes) and isinstance(freshness, bytes):
        return AbsentError(text, query_pb2.Absence.FromString(absence), query_pb2.Freshness.FromString(freshness))
    kind = _ERRORS.get(failure.code())
    return kind(text) if kind else UnavailableError(f"{address} does not answer: {text}")


def error_of_key(failure: query_pb2.KeyError) -> StatecastError:
    """Returns the error of one key of a batch."""
    return _ERRORS.get(_BY_NUMBER.get(failure.code, grpc.StatusCode.UNKNOWN), UnavailableError)(failure.message)
