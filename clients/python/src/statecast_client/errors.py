"""The errors of a call to the query service, and the one table that maps gRPC statuses to them.

StatecastError
├── AbsentError          the key has no value; carries the known facts of its absence
├── UnknownStoreError    there is no store of this name
├── InvalidError         an argument is wrong, and stays wrong
├── BehindError          the answer would be older than the bounds accept: accept more, or wait longer
├── OverloadedError      the instance refuses calls now, or the request is too large: ask later, or for less
└── UnavailableError     no instance answered in time: ask again
"""

from collections.abc import Mapping

from statecast.query.v1 import query_pb2

ABSENCE = "statecast-absence-bin"
FRESHNESS = "statecast-freshness-bin"


class StatecastError(Exception):
    """Any error of this client; the text gives the remedy."""


class AbsentError(StatecastError):
    """The key has no value, as of `freshness.current_through`."""

    def __init__(self, message: str, absence: query_pb2.Absence, freshness: query_pb2.Freshness) -> None:
        super().__init__(message)
        self.absence = absence
        self.freshness = freshness


class UnknownStoreError(StatecastError):
    """There is no store of this name; the text has the nearest one."""


class InvalidError(StatecastError):
    """An argument is wrong; the text names it."""


class BehindError(StatecastError):
    """The answer would be older than the bounds accept, or the key stands in another partition than its own."""


class OverloadedError(StatecastError):
    """The instance refuses calls now, or the request is too large."""


class UnavailableError(StatecastError):
    """No instance answered in time."""


_BY_STATUS: Mapping[int, type[StatecastError]] = {
    3: InvalidError,  # INVALID_ARGUMENT
    5: UnknownStoreError,  # NOT_FOUND
    7: InvalidError,  # PERMISSION_DENIED
    8: OverloadedError,  # RESOURCE_EXHAUSTED
    9: BehindError,  # FAILED_PRECONDITION
    11: InvalidError,  # OUT_OF_RANGE
    12: InvalidError,  # UNIMPLEMENTED
    16: InvalidError,  # UNAUTHENTICATED
}
"""By the number of the gRPC status, so that this module needs no gRPC; any other is an UnavailableError."""
_UNAVAILABLE = 14


def error_of_status(status: int, text: str, trailing: Mapping[str, str | bytes], address: str) -> StatecastError:
    """Returns the error of a call that failed at an address; `trailing` is the call's trailing metadata."""
    absence, freshness = trailing.get(ABSENCE), trailing.get(FRESHNESS)
    if isinstance(absence, bytes) and isinstance(freshness, bytes):
        return AbsentError(text, query_pb2.Absence.FromString(absence), query_pb2.Freshness.FromString(freshness))
    error = _BY_STATUS.get(status)
    return error(text) if error else UnavailableError(f"{address} does not answer: {text}")


def key_error_of(error: StatecastError) -> query_pb2.KeyError:
    """Returns the error of each key of a batch whose call has failed."""
    status = next((status for status, kind in _BY_STATUS.items() if isinstance(error, kind)), _UNAVAILABLE)
    return query_pb2.KeyError(code=status, message=str(error))


def error_of_key(error: query_pb2.KeyError) -> StatecastError:
    """Returns the error of one key of a batch."""
    return _BY_STATUS.get(error.code, UnavailableError)(error.message)
