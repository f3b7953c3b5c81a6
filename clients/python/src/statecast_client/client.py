"""The client that programs use: one method per call of the query service."""

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Iterable, Mapping, Sequence
from contextlib import aclosing, suppress
from itertools import chain
from typing import Self, TypeVar

import grpc
import grpc.aio

from statecast.position import covers
from statecast.query.v1 import query_pb2
from statecast.query.v1 import query_service_pb2 as query
from statecast.state.v1 import state_pb2
from statecast_client.errors import (
    InvalidError,
    OverloadedError,
    StatecastError,
    UnavailableError,
    error_of_key,
    key_error_of,
)
from statecast_client.gets import Gets, halves
from statecast_client.keys import Change, KeyParts, key_of, not_unicode
from statecast_client.limits import MAX_KEYS, MAX_RESPONSE_BYTES
from statecast_client.router import Call, Router, stub
from statecast_client.shard_map import ShardMap, group_by_owner, hash_group

_PAUSE_S = 0.5
_PASSING = (UnavailableError, OverloadedError)
"""Errors that another attempt may not meet again."""

T = TypeVar("T")


class _MovedError(Exception):
    """The keys that were polled together are not in the same shard any more."""


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
        proxy: str | None = None,
        timeout_s: float = 5.0,
        refresh_s: float = 30.0,
    ) -> None:
        """Begins at any of the instances; `addresses` are their public ports as `host:port`. Raises InvalidError.

        It connects through `proxy`, an address `http://host:port`, or else through that of the environment, but
        directly to this machine.

        The shard map is read at the first call, and again when it is older than `refresh_s` or a call has failed.
        """
        if not addresses:
            raise InvalidError("addresses: there are none: name at least one instance")
        self._router = Router(
            addresses, credentials=credentials, proxy=proxy, on_failure=lambda *_: self._read_shards()
        )
        self._gets = Gets(self._router)
        self._address = addresses[0]
        self._timeout_s = timeout_s
        self._refresh_s = refresh_s
        self._read_at: float | None = None
        self._reading: asyncio.Task[None] | None = None

    async def get(self, store: str, key: KeyParts, *, bounds: query_pb2.Bounds | None = None) -> query.GetStateResponse:
        """Returns the value of one key and its freshness. Raises AbsentError when there is none."""
        now = time.monotonic()
        deadline = now + self._timeout_s
        if self._read_at is None or now - self._read_at > self._refresh_s:
            await self._fresh_shards(deadline)
        return await self._gets.answer(store, key if isinstance(key, str) else key_of(key), bounds, deadline)

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
        it is left out. A key that cannot be read has its `error` in its result, as have all keys of a call that fails.
        Raises the error of the first call only when all calls fail.
        """
        deadline = time.monotonic() + self._timeout_s
        batches = await self._batches(store, [key_of(key) for key in keys], deadline)
        failures: list[StatecastError] = []

        async def get(batch: Mapping[int, state_pb2.StateKey]) -> Sequence[query_pb2.KeyResult]:
            try:
                return await self._get_batch(store, batch, after or {}, deadline, bounds)
            except StatecastError as failure:
                failures.append(failure)
                return [query_pb2.KeyResult(index=index, error=key_error_of(failure)) for index in batch]

        results = await asyncio.gather(*map(get, batches))
        if failures and len(failures) == len(batches):
            raise failures[0]
        return sorted(chain.from_iterable(results), key=lambda result: result.index)

    async def scan(
        self,
        store: str,
        group: str = "",
        *,
        group_from: str = "",
        group_to: str = "",
        sort_from: str = "",
        sort_to: str = "",
        sort_prefix: str = "",
        reverse: bool = False,
        local_only: bool = False,
        page_size: int = 0,
        bounds: query_pb2.Bounds | None = None,
    ) -> AsyncGenerator[query_pb2.State, None]:
        """Yields the states of a group, or of all from `group_from` to below `group_to`, in the order of their keys.

        Of each group it yields those from `sort_from` to below `sort_to`. An empty bound is open. `local_only`
        yields only the states that the first of the client's addresses owns.

        A page comes from all partitions, or its error is raised: nothing is missing among the states before. To go on
        after an error, begin at the group of the last state with `group_from`.
        """
        try:
            request = query.ScanStatesRequest(
                store=store,
                group=group,
                group_from=group_from,
                group_to=group_to,
                sort_from=sort_from,
                sort_to=sort_to,
                sort_prefix=sort_prefix,
                reverse=reverse,
                local_only=local_only,
                page_size=page_size,
                bounds=bounds,
            )
        except UnicodeEncodeError as error:
            raise not_unicode(error) from error

        def scan(channel: grpc.aio.Channel, timeout_s: float) -> Awaitable[query.ScanStatesResponse]:
            return stub(channel).ScanStates(request, timeout=timeout_s)

        while True:
            if local_only:
                page = await self._router.call_at(self._address, scan, self._timeout_s)
            else:
                page = await self._answer(store, group, scan, time.monotonic() + self._timeout_s)
            for state in page.states:
                yield state
            if not page.next_page_token:
                return
            request.page_token = page.next_page_token

    async def shards(self, store: str = "") -> query.ListShardsResponse:
        """Returns the stores, their partitions and their replicas; of one store when it is named."""
        return await self._router.list_shards(halves(time.monotonic() + self._timeout_s), store)

    def watch(self, store: str, keys: Sequence[KeyParts], *, wait_s: float = 5.0) -> AsyncGenerator[Change, None]:
        """Yields the state of each key, and then every newer value; never an older one of the same epoch.

        Polls each shard with calls of up to `wait_s`, and goes on when instances come and go. A slow reader misses
        versions that newer ones replace, but never the newest. A shard that does not answer delays no other. Raises
        InvalidError, UnknownStoreError and BehindError, after what the same answer brought of other keys.
        """
        if not keys:
            raise InvalidError("keys: there are none: name at least one")
        if wait_s <= 0:
            raise InvalidError(f"wait_s: {wait_s} is no time to wait: the polls would follow each other at once")
        return self._changes(store, [key_of(key) for key in keys], wait_s)

    async def close(self) -> None:
        """Closes all connections; calls and watches under way, and later ones, raise UnavailableError."""
        if self._reading is not None:
            self._reading.cancel()
        await self._router.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _answer(self, store: str, group: str, call: Call[T], deadline: float, wait_s: float = 0.0) -> T:
        """Returns the answer of the owner of a group, or of any instance for an empty group.

        An instance that fails, or is silent for half of the time, is left for another, once. `wait_s` is how long the
        service may hold the call on top of the timeout.
        """
        await self._fresh_shards(deadline)
        return await self._router.call(store, hash_group(group) if group else None, call, halves(deadline, wait_s))

    async def _fresh_shards(self, deadline: float) -> None:
        """Waits for the first shard map only; it stays empty when no instance reports it."""
        if self._read_at is None:
            await asyncio.wait([self._read_shards()], timeout=deadline - time.monotonic())
        elif time.monotonic() - self._read_at > self._refresh_s:
            self._read_shards()

    def _read_shards(self) -> "asyncio.Task[None]":
        async def read() -> None:
            with suppress(StatecastError):  # the previous map stays in use; without one, any instance is asked
                await self._router.refresh(halves(time.monotonic() + self._timeout_s))
                self._read_at = time.monotonic()
                await self._router.close_unused(self._timeout_s)

        if self._reading is None or self._reading.done():
            self._reading = asyncio.create_task(read())
        return self._reading

    async def _batches(
        self, store: str, keys: Sequence[state_pb2.StateKey], deadline: float
    ) -> list[dict[int, state_pb2.StateKey]]:
        """Returns the keys by their indices, in batches of which each is for one shard."""
        await self._fresh_shards(deadline)
        owners = self._owners(store, keys)
        return [{index: keys[index] for index in indices} for indices in group_by_owner(owners, MAX_KEYS)]

    def _owners(self, store: str, keys: Iterable[state_pb2.StateKey]) -> list[tuple[str, ...]]:
        """Returns the replicas of each key, the owner first."""
        return [self._router.shards.replicas(store, hash_group(key.group)) for key in keys]

    async def _get_batch(
        self,
        store: str,
        batch: Mapping[int, state_pb2.StateKey],
        after: Mapping[int, state_pb2.Position],
        deadline: float,
        bounds: query_pb2.Bounds | None = None,
        wait_s: float = 0.0,
    ) -> Sequence[query_pb2.KeyResult]:
        """Returns the results of a batch, with their indices among all keys; `after` is by these, too."""
        indices = [*batch]
        queries = [query_pb2.KeyQuery(key=key, after=after.get(index)) for index, key in batch.items()]
        request = query.BatchGetStatesRequest(
            store=store, keys=queries, bounds=bounds, max_response_bytes=MAX_RESPONSE_BYTES
        )
        if wait_s:
            request.max_wait.FromNanoseconds(int(wait_s * 1e9))

        def get(channel: grpc.aio.Channel, timeout_s: float) -> Awaitable[query.BatchGetStatesResponse]:
            return stub(channel).BatchGetStates(request, timeout=timeout_s)

        response = await self._answer(store, queries[0].key.group, get, deadline, wait_s)
        for result in response.results:
            result.index = indices[result.index]
        return response.results

    async def _changes(
        self, store: str, keys: Sequence[state_pb2.StateKey], wait_s: float
    ) -> AsyncGenerator[Change, None]:
        read: dict[int, state_pb2.Position] = {}
        while True:
            batches = await self._batches(store, keys, time.monotonic() + self._timeout_s)
            shards = self._router.shards
            polls = [self._poll(store, batch, shards, read, wait_s) for batch in batches]
            with suppress(_MovedError):
                async with aclosing(merged(polls)) as changes:
                    async for index, change in changes:
                        read[index] = change.position  # now, since what merged drops at its end has to come again
                        yield change

    async def _poll(
        self,
        store: str,
        batch: Mapping[int, state_pb2.StateKey],
        shards: ShardMap,
        read: Mapping[int, state_pb2.Position],
        wait_s: float,
    ) -> AsyncGenerator[tuple[int, Change], None]:
        """Yields the changes of one shard by the map, after what was read. Raises errors that would come again.

        Raises _MovedError when a newer map has the keys in several shards.
        """
        positions = dict(read)
        while True:
            try:
                deadline = time.monotonic() + self._timeout_s
                results = await self._get_batch(store, batch, positions, deadline, wait_s=wait_s)
                for result in results:
                    if result.HasField("error"):
                        continue
                    change = Change.of(batch[result.index], result)
                    if not covers(positions.get(result.index), change.position):
                        positions[result.index] = change.position
                        yield result.index, change
                _raise_error_in(results)  # last: a key that cannot be read silences no other
            except _PASSING:
                if self._router.is_closed:
                    raise
                await asyncio.sleep(_PAUSE_S)
            if self._router.shards is not shards:
                shards = self._router.shards
                if len(set(self._owners(store, batch.values()))) > 1:
                    raise _MovedError


def _raise_error_in(results: Sequence[query_pb2.KeyResult]) -> None:
    """Raises the error of a key, if there is one; one that passes only when all do."""
    errors = [error_of_key(result.error) for result in results if result.HasField("error")]
    for error in sorted(errors, key=lambda error: isinstance(error, _PASSING)):
        raise error


async def merged(sources: Iterable[AsyncIterable[T]]) -> AsyncGenerator[T, None]:
    """Yields the items of the sources, each of which waits for the reader. Raises the error of one."""
    queue: asyncio.Queue[T | Exception] = asyncio.Queue(1)

    async def read(source: AsyncIterable[T]) -> None:
        try:
            async for item in source:
                await queue.put(item)
        except Exception as error:  # noqa: BLE001  the reader raises it
            await queue.put(error)

    tasks = [asyncio.create_task(read(source)) for source in sources]
    try:
        while True:
            item = await queue.get()
            if isinstance(item, Exception):
                raise item
            yield item
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
