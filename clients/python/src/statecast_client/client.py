"""The client that programs use: one method per call of the query service."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Mapping, Sequence
from types import TracebackType
from typing import Self

import grpc
import grpc.aio

from statecast.query.v1 import query_pb2
from statecast.query.v1 import query_service_pb2 as query
from statecast.state.v1 import state_pb2
from statecast_client.errors import InvalidError
from statecast_client.keys import Change, KeyParts, key_of
from statecast_client.router import RefreshingRouter, stub
from statecast_client.watching import Watch


class StatecastClient:
    """Asks the owner of each key directly, and another instance when the owner does not answer.

    Needs a running event loop; use it as an async context manager, or call `close`. Every method raises a
    StatecastError, and takes at most `timeout_s` on top of the wait that the caller asks for. A key is a group, or a
    tuple of group, sort and member, or a StateKey.
    """

    def __init__(
        self,
        addresses: Sequence[str],
        *,
        credentials: grpc.ChannelCredentials | None = None,
        timeout_s: float = 5.0,
        refresh_s: float = 30.0,
    ) -> None:
        """Begins at any of the instances; `addresses` are their public ports as `host:port`. Raises InvalidError."""
        if not addresses:
            raise InvalidError("addresses: there are none: name at least one instance")
        self._router = RefreshingRouter(addresses, credentials, timeout_s, refresh_s)
        self._address = addresses[0]
        self._timeout_s = timeout_s

    async def get(self, store: str, key: KeyParts, *, bounds: query_pb2.Bounds | None = None) -> query.GetStateResponse:
        """Returns the value of one key and its freshness. Raises AbsentError when there is none."""
        request = query.GetStateRequest(store=store, key=key_of(key), bounds=bounds)
        return await self._router.answer(
            store, request.key.group, lambda channel, timeout_s: stub(channel).GetState(request, timeout=timeout_s)
        )

    async def batch_get(
        self,
        store: str,
        keys: Sequence[KeyParts],
        *,
        after: Mapping[int, state_pb2.Position] | None = None,
        bounds: query_pb2.Bounds | None = None,
    ) -> list[query_pb2.KeyResult]:
        """Returns a result per key, by rising index, with one call per shard.

        `after` has, by the index of a key, the position that the caller already has: a key that has not changed after
        it is left out. A key that cannot be read has its error in its result.
        """
        batches = await self._router.batches(store, [key_of(key) for key in keys])
        requests = [batch.request(store, after or {}, bounds) for batch in batches]
        results = await asyncio.gather(*map(self._router.get_batch, batches, requests))
        return sorted((result for batch in results for result in batch), key=lambda result: result.index)

    async def scan(
        self,
        store: str,
        group: str = "",
        *,
        sort_from: str = "",
        sort_to: str = "",
        sort_prefix: str = "",
        reverse: bool = False,
        local_only: bool = False,
        page_size: int = 0,
        bounds: query_pb2.Bounds | None = None,
    ) -> AsyncGenerator[query_pb2.State, None]:
        """Yields the states of a group, or of the whole store, in the order of their keys.

        `local_only` yields only what the first of the client's addresses owns.
        """
        request = query.ScanStatesRequest(
            store=store,
            group=group,
            sort_from=sort_from,
            sort_to=sort_to,
            sort_prefix=sort_prefix,
            reverse=reverse,
            local_only=local_only,
            page_size=page_size,
            bounds=bounds,
        )

        def scan(channel: grpc.aio.Channel, timeout_s: float) -> Awaitable[query.ScanStatesResponse]:
            return stub(channel).ScanStates(request, timeout=timeout_s)

        while True:
            if local_only:
                page = await self._router.call_at(self._address, scan, self._timeout_s)
            else:
                page = await self._router.answer(store, group, scan)
            for state in page.states:
                yield state
            if not page.next_page_token:
                return
            request.page_token = page.next_page_token

    async def shards(self, store: str = "") -> query.ListShardsResponse:
        """Returns the stores, their partitions and their replicas; of one store when it is named."""
        return await self._router.listing(store)

    def watch(self, store: str, keys: Sequence[KeyParts], *, wait_s: float = 5.0) -> AsyncGenerator[Change, None]:
        """Yields what each key holds, and then every newer value; never an older one of the same epoch.

        Polls each shard with calls of up to `wait_s`, and goes on when instances come and go. A slow reader misses
        versions that newer ones replace, but never the newest. Raises InvalidError and UnknownStoreError.
        """
        return Watch(self._router, store, [key_of(key) for key in keys], wait_s).changes()

    async def close(self) -> None:
        """Closes all connections."""
        await self._router.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        await self.close()
