"""The one interface of lookups; local, remote and routed lookups are composed from it."""

from typing import Protocol

from statecast.query.v1 import query_service_pb2 as query


class Lookup(Protocol):
    """Answers lookups that `request_checks` has passed.

    Servicers call it on the event loop; it never blocks the loop. `deadline` is a time of the monotonic clock; a call
    ends by then. Raises a LookupFailedError: AbsentError when there is no value, NotServedError or UnreachableError
    when another replica should be asked, BoundsError when the bounds cannot be met before the deadline. An answer
    says how stale it may be, and does not promise more.
    """

    async def get(self, request: query.GetStateRequest, deadline: float) -> query.GetStateResponse:
        """Returns the value of one key."""

    async def batch(self, request: query.BatchGetStatesRequest, deadline: float) -> query.BatchGetStatesResponse:
        """Returns what is newer; waits for it up to `max_wait`. The failure of a key stands in its result."""

    async def scan(
        self, request: query.ScanStatesRequest, deadline: float, partition: int | None = None
    ) -> query.ScanStatesResponse:
        """Returns a page of a group, or, without a group, of the store; of one partition when it is given."""

    async def versions(self, request: query.ListVersionsRequest, deadline: float) -> query.ListVersionsResponse:
        """Returns a page of the versions of a key, the newest first; raises NoHistoryError where none are kept."""
