"""The one interface of all reads: those here, those at a peer, and those that are routed to either.

RoutedReads ──▶ Dispatch ──┬─▶ LocalReads   the stores of this instance
at once, or                └─▶ PeerReads    another instance, in one hop
gathered        hedged
"""

from collections.abc import Awaitable, Sequence
from typing import NamedTuple, Protocol

from query_service.reads.wire import FIRST, sized
from statecast.query.v1 import query_pb2
from statecast.query.v1 import query_service_pb2 as api


class Row(NamedTuple):
    """A row of a page: its key in the store, and the encoded State."""

    key: bytes
    state: bytes


class Page(NamedTuple):
    """A page of rows; `shards` has the freshness of every partition of a scan of a whole store."""

    rows: Sequence[Row]
    next_page_token: str
    freshness: query_pb2.Freshness | None
    shards: Sequence[query_pb2.Freshness] = ()

    def encoded(self) -> bytes:
        """Returns the encoded ScanStatesResponse."""
        rest = api.ScanStatesResponse(
            next_page_token=self.next_page_token, freshness=self.freshness, shards=self.shards
        )
        return b"".join([sized(FIRST, row.state) for row in self.rows]) + rest.SerializeToString()


class Reads(Protocol):
    """Reads rows by requests that `request_checks` has passed.

    It is called on the event loop, and does not block it. A read that need not wait returns the encoded response at
    once; one that has to wait returns something to be awaited. `deadline` is a time of the monotonic clock, by which it
    ends. Raises a LookupFailedError, at once or when it is awaited: AbsentError when there is no value, NotServedError
    or UnreachableError when another replica should be asked, BoundsError when the bounds cannot be met before the
    deadline. A response says how stale it may be, and does not promise more.
    """

    def get(self, request: api.GetStateRequest, deadline: float) -> bytes | Awaitable[bytes]:
        """Returns the encoded GetStateResponse for one key."""

    def batch(
        self, request: api.BatchGetStatesRequest, deadline: float
    ) -> bytes | Awaitable[bytes | api.BatchGetStatesResponse]:
        """Returns the newer states: an encoded BatchGetStatesResponse, or, from a peer, the message.

        Waits for them up to `max_wait`. The failure of a key or range stands in its result; but where one instance is
        asked for one partition alone, the batch fails as a whole, so that another is asked. Raises InvalidRequestError.
        """

    def scan(self, request: api.ScanStatesRequest, deadline: float, partition: int | None = None) -> Awaitable[Page]:
        """Returns a page of a group, or, without a group, of many; of one partition when it is named."""

    def versions(self, request: api.ListVersionsRequest, deadline: float) -> Awaitable[bytes]:
        """Returns an encoded page of the versions of a key, the newest first. Raises NoHistoryError."""
