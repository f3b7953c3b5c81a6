"""What can go wrong when the query service is asked.

StatecastError
├── AbsentError          the key has no value; carries what is known of its absence
├── UnknownStoreError    there is no store of this name
├── InvalidError         an argument is wrong, and stays wrong
├── BehindError          the answer would be older than the bounds accept: accept more, or wait longer
├── OverloadedError      the instance refuses calls now, or the question is too large: ask later, or for less
└── UnavailableError     no instance answered in time: ask again
"""

from statecast.query.v1 import query_pb2


class StatecastError(Exception):
    """Every error of this client; the text tells the reader what to do."""


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
    """The answer would be older than the bounds accept."""


class OverloadedError(StatecastError):
    """The instance refuses calls now, or the question is too large."""


class UnavailableError(StatecastError):
    """No instance answered in time."""
