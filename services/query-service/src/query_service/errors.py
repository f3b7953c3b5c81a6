"""What can go wrong in the query service.

QueryServiceError
├── FatalError                  ends the process with its text and status 2
│   ├── SettingsError           a setting or an argument is wrong
│   ├── StoresFileError         the stores file is wrong
│   ├── PortInUseError          a port is taken
│   └── DataDirectoryError      the data directory cannot be used, or another instance uses it
├── LookupFailedError                one call fails, the service goes on; `grpc_status` gives each its status
│   ├── InvalidRequestError     a field of the request is wrong
│   │   ├── MalformedKeyError   a key that no row can have
│   │   ├── OversizedBatchError more keys than a batch may have
│   │   └── BadTokenError       a page token that was not made for this scan
│   ├── UnknownStoreError       there is no store of this name
│   ├── AbsentError             the key has no value
│   ├── NotServedError          this replica does not hold the partition, or has not caught up: ask another
│   ├── UnreachableError        the peer did not answer: ask another
│   ├── BoundsError             the answer would be older than the caller accepts
│   ├── NoHistoryError          the store keeps no older versions
│   ├── BeforeHistoryError      the versions that are kept begin later
│   ├── TooLargeError           the answer would be larger than the limit
│   └── OverloadedError         the calls in work hold as much memory as they may
├── PoisonRecordError           a record of a keyed topic that cannot be applied; it is skipped and counted
└── StoreError                  a store on disk
    ├── StoreUnusableError      a directory that is corrupt, foreign or of a newer format; it is set aside
    ├── StoreFailedError        the disk failed, for example because it is full; it is tried again
    └── StoreClosedError        the partition has moved away while it was read
"""

from statecast.query.v1 import query_pb2


class QueryServiceError(Exception):
    """Every error that this service names; the text tells the reader what to do."""


class FatalError(QueryServiceError):
    """The process cannot start."""


class SettingsError(FatalError):
    """A setting or an argument is wrong."""


class StoresFileError(FatalError):
    """The stores file is wrong."""


class PortInUseError(FatalError):
    """A port is taken."""


class DataDirectoryError(FatalError):
    """The data directory cannot be used."""


class LookupFailedError(QueryServiceError):
    """One call fails, the service goes on."""


class InvalidRequestError(LookupFailedError):
    """A field of the request is wrong; the text names it."""


class MalformedKeyError(InvalidRequestError):
    """A key that no row can have."""


class OversizedBatchError(InvalidRequestError):
    """More keys than a batch may have."""


class BadTokenError(InvalidRequestError):
    """A page token that was not made for this scan."""


class UnknownStoreError(LookupFailedError):
    """There is no store of this name."""


class AbsentError(LookupFailedError):
    """The key has no value, as of `freshness.current_through`."""

    def __init__(self, message: str, absence: query_pb2.Absence, freshness: query_pb2.Freshness) -> None:
        super().__init__(message)
        self.absence = absence
        self.freshness = freshness


class NotServedError(LookupFailedError):
    """This replica does not hold the partition, or has not caught up with it."""


class UnreachableError(LookupFailedError):
    """The peer did not answer."""


class BoundsError(LookupFailedError):
    """The answer would be older than the caller accepts."""


class NoHistoryError(LookupFailedError):
    """The store keeps no older versions."""


class BeforeHistoryError(LookupFailedError):
    """The versions that are kept begin later."""


class TooLargeError(LookupFailedError):
    """The answer would be larger than the limit."""


class OverloadedError(LookupFailedError):
    """The calls in work hold as much memory as they may."""


class PoisonRecordError(QueryServiceError):
    """A record of a keyed topic that cannot be applied."""


class StoreError(QueryServiceError):
    """A store on disk."""


class StoreUnusableError(StoreError):
    """A directory that is corrupt, foreign or of a newer format."""


class StoreFailedError(StoreError):
    """The disk failed; it is tried again."""


class StoreClosedError(StoreError):
    """The partition has moved away while it was read."""
