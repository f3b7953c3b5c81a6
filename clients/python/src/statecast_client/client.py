"""What callers use: one method per question to the query service."""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from types import TracebackType
from typing import Self

import grpc

from statecast.query.v1 import query_pb2
from statecast.query.v1 import query_service_pb2 as query
from statecast.state.v1 import state_pb2
from statecast_client.batches import Batch, KeyParts, key_of, split
from statecast_client.change import Change
from statecast_client.channels import Channels
from statecast_client.errors import InvalidError
from statecast_client.router import Router
from statecast_client.watching import Watch


class StatecastClient:
    """Asks the owner of each key itself, and any other instance when that one does not answer.

    Needs a running event loop; use it as an async context manager, or call `close`. Every method raises a
    StatecastError, and takes at most `timeout_s` beside the wait that was asked for. A key is a group, or a tuple of
    group, sort and member, or a StateKey.
    """

    def __init__(
        self,
        addresses: Sequence[str],
        *,
        credentials: grpc.ChannelCredentials | None = None,
        timeout_s: float = 5.0,
        refresh_s: float = 30.0,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """Begins at any of the instances; `addresses` are their public ports as `host:port`. Raises InvalidError."""
        if not addresses:
            raise InvalidError("addresses: there are none: name at least one instance")
        self._router = Router(Channels(credentials, monotonic), addresses, refresh_s, monotonic)
        self._address = addresses[0]
        self._timeout_s = timeout_s
        self._monotonic = monotonic

    async def get(self, store: str, key: KeyParts, *, bounds: query_pb2.Bounds | None = None) -> query.GetStateResponse:
        """Returns the value of one key and its freshness. Raises AbsentError when there is none."""
        request = query.GetStateRequest(store=store, key=key_of(key), bounds=bounds)
        return await self._router.answer(
            store, request.key.group, lambda stub, left: stub.GetState(request, timeout=left), self._timeout_s
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

        `after` has, by the index of a key, the position that the caller already has: a key that has not changed since
        is left out. A key that cannot be had has its error in its result.
        """
        shards = await self._router.shards(self._timeout_s)
        batches = split([key_of(key) for key in keys], lambda group: shards.candidates(store, group))
        answers = await asyncio.gather(*(self._ask(store, batch, after or {}, bounds) for batch in batches))
        return sorted((result for answer in answers for result in answer), key=lambda result: result.index)

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

        `local_only` yields what the first of the client's addresses owns, and asks nobody else.
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
        while True:
            page = await self._page(request)
            for state in page.states:
                yield state
            if not page.next_page_token:
                return
            request.page_token = page.next_page_token

    async def shards(self, store: str = "") -> query.ListShardsResponse:
        """Returns the stores, their partitions and who serves them; of one store when it is named."""
        return await self._router.list_shards(store, self._timeout_s)

    def watch(self, store: str, keys: Sequence[KeyParts], *, wait_s: float = 5.0) -> AsyncGenerator[Change, None]:
        """Yields what each key holds, and then every newer value; never an older one of the same epoch.

        Polls each shard with calls of up to `wait_s`, and goes on when instances come and go. Versions that follow each
        other faster than they are taken are left out; the newest never is. Raises InvalidError and UnknownStoreError.
        """
        return Watch(self._router, store, [key_of(key) for key in keys], wait_s, self._timeout_s).changes()

    async def close(self) -> None:
        """Closes all connections."""
        await self._router.close()

    async def __aenter__(self) -> Self:
        """Returns the client."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Closes the client."""
        await self.close()

    async def _ask(
        self, store: str, batch: Batch, after: Mapping[int, state_pb2.Position], bounds: query_pb2.Bounds | None
    ) -> list[query_pb2.KeyResult]:
        request = batch.request(store, after, bounds)
        answer = await self._router.answer(
            store, batch.group, lambda stub, left: stub.BatchGetStates(request, timeout=left), self._timeout_s
        )
        return batch.results(answer)

    async def _page(self, request: query.ScanStatesRequest) -> query.ScanStatesResponse:
        if request.local_only:
            deadline = self._monotonic() + self._timeout_s
            return await self._router.answer_of(
                self._address, lambda stub, left: stub.ScanStates(request, timeout=left), deadline
            )
        return await self._router.answer(
            request.store, request.group, lambda stub, left: stub.ScanStates(request, timeout=left), self._timeout_s
        )
