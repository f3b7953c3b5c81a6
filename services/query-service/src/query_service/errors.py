"""The errors of the query service; `server.status` gives each LookupFailedError its status."""

from typing import Self

from statecast.query.v1 import query_pb2
from statecast_service.errors import ServiceError


class QueryServiceError(Exception):
    """Any error that this service names; the text gives the remedy."""


class FatalError(QueryServiceError, ServiceError):
    """The process cannot start."""

    exit_status = 2


class StoresFileError(FatalError):
    """The stores file is wrong."""


class NameTakenError(FatalError):
    """Another live instance has the name of this one."""


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

    @classmethod
    def of(cls, store: str, group: str, absence: query_pb2.Absence, freshness: query_pb2.Freshness) -> Self:
        return cls(f"key: `{group}` has no value in `{store}`", absence, freshness)


class NotServedError(LookupFailedError):
    """This replica does not hold the partition, or has not caught up with it: another one is asked."""


class ColdError(NotServedError):
    """The row is on a slow disk: it is read in a thread. No caller sees this."""


class PeerOverloadedError(NotServedError):
    """The peer has more calls in work than it can hold, which tells nothing about its partitions."""


class UnreachableError(LookupFailedError):
    """The peer did not answer: another one is asked."""


class TimedOutError(UnreachableError):
    """The peer did not answer in the time that was left for it, however short."""


class BoundsError(LookupFailedError):
    """The answer would be older than the caller accepts."""


class MisplacedKeyError(LookupFailedError):
    """The key stands in another partition than the store's partitioner gives to it, or all keys are in doubt."""


class NoHistoryError(LookupFailedError):
    """The store keeps no older versions."""


class BeforeHistoryError(LookupFailedError):
    """The versions that are kept begin later."""


class TooLargeError(LookupFailedError):
    """The answer would be larger than the limit."""

    def __init__(self, text: str = "the answer would be too large: ask for fewer keys and ranges at a time") -> None:
        super().__init__(text)


class CheckpointGoneError(LookupFailedError):
    """There is no such checkpoint any more: make another."""


class CheckpointRefusedError(LookupFailedError):
    """The instance gives no checkpoint of the store."""


class OverloadedError(LookupFailedError):
    """The calls in work hold as much memory as they may, or as many checkpoints are kept."""


class SeedError(QueryServiceError):
    """A partition could not be taken from a peer: the next one is asked, or the topic is read."""


class BackupError(FatalError):
    """A backup cannot be made, or does not fit."""


class PoisonRecordError(QueryServiceError):
    """A record that cannot be applied; it is refused and counted by `reason`: key, value, tombstone."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class StoreError(QueryServiceError):
    """A store on disk."""


class StoreUnusableError(StoreError):
    """A directory that is corrupt, foreign or of a newer format; it is set aside."""


class StoreFailedError(StoreError):
    """The disk failed, for example because it is full; it is tried again."""


class StoreClosedError(StoreError):
    """The partition has moved away while it was read."""
