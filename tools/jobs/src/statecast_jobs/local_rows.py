"""The rows that the instance beside the runner owns, and which partitions these are."""

from collections.abc import AsyncGenerator, Callable
from typing import Any, NamedTuple, Protocol

import grpc.aio
from typing_extensions import override

from statecast.query.v1.query_pb2 import State
from statecast.query.v1.query_service_pb2 import ListShardsRequest, ScanStatesRequest
from statecast.query.v1.query_service_pb2_grpc import QueryServiceStub
from statecast_client.errors import InvalidError, UnknownStoreError
from statecast_client.router import error_of
from statecast_jobs.errors import InstanceError

PAGE = 500


class LocalPage(NamedTuple):
    """Some of the rows, and all partitions of the scan that they are of."""

    rows: list[State]
    partitions: frozenset[int]


class StoreFacts(NamedTuple):
    """The facts about the store in the shard map."""

    message: str
    """The form of its values: the full name of a message, `json` or `bytes`."""
    partitions: frozenset[int]


class LocalRows(Protocol):
    """The instance beside the runner. Raises StatecastError while it is silent, InstanceError if it never answers."""

    async def facts(self) -> StoreFacts: ...

    async def owned(self) -> frozenset[int]:
        """Returns the partitions that the instance owns now."""

    def pages(self) -> AsyncGenerator[LocalPage, None]:
        """Returns all rows of the partitions that the instance owns when the first page is asked for.

        None of those that were there when the runner began is missing: an instance that lags raises BehindError.
        """


class InstanceRows(LocalRows):
    """Asks the instance by gRPC."""

    def __init__(
        self, channel: grpc.aio.Channel, address: str, store: str, timeout_s: float, clock: Callable[[], float]
    ) -> None:
        """`clock` tells seconds and never goes back; the run begins now."""
        self._stub: Any = QueryServiceStub(channel)
        self._address, self._store, self._timeout_s = address, store, timeout_s
        self._clock, self._began = clock, clock()

    @override
    async def facts(self) -> StoreFacts:
        listing = await self._call(self._stub.ListShards, ListShardsRequest(store=self._store))
        [store] = listing.stores
        return StoreFacts(store.message, frozenset(shard.partition for shard in listing.shards))

    @override
    async def owned(self) -> frozenset[int]:
        first = ScanStatesRequest(store=self._store, local_only=True, page_size=1)
        return _partitions(await self._call(self._stub.ScanStates, first))

    @override
    async def pages(self) -> AsyncGenerator[LocalPage, None]:
        request = ScanStatesRequest(store=self._store, local_only=True, page_size=PAGE)
        while True:
            # An instance that lags less than the runner has run has applied all that was there when it began.
            request.bounds.max_lag_ms = max(1, int((self._clock() - self._began) * 1000))
            page = await self._call(self._stub.ScanStates, request)
            yield LocalPage(list(page.states), _partitions(page))
            request.page_token = page.next_page_token
            if not request.page_token:
                return

    async def _call(self, method: Callable[..., Any], request: Any) -> Any:
        try:
            return await method(request, timeout=self._timeout_s)
        except grpc.aio.AioRpcError as error:
            named = error_of(error, self._address)
            if isinstance(named, InvalidError | UnknownStoreError):
                raise InstanceError(f"{self._address}: {named}") from error
            raise named from error


def _partitions(page: Any) -> frozenset[int]:
    return frozenset(freshness.partition for freshness in page.shards)
