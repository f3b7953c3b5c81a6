"""The edge's only way to the query service; no method raises errors of gRPC. Keeps its shard map fresh."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Hashable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial

import grpc
import grpc.aio
import structlog

from statecast.coalescing import Coalescer
from statecast.query.v1.query_pb2 import Bounds
from statecast.query.v1.query_service_pb2 import (
    BatchGetStatesResponse,
    ListShardsResponse,
    ScanStatesRequest,
    ScanStatesResponse,
)
from statecast_client.limits import MAX_CALLS
from statecast_client.router import RETRIED, Router, call_batch, stub
from statecast_client.shard_map import hash_group
from ws_edge.errors import (
    DeclinedError,
    MalformedFrameError,
    RequestError,
    RowTooLargeError,
    UnavailableError,
    UnknownStoreError,
)
from ws_edge.model.questions import Question
from ws_edge.model.states import KeyState, Position, UnreadableRow
from ws_edge.model.stores import Store
from ws_edge.upstream.queries import (
    Page,
    Progress,
    Query,
    RangeResult,
    Result,
    Scan,
    batch,
    failure_of,
    page,
    position_message,
    requests_of,
    results,
    rows,
)

ATTEMPTS = 3
RETRY_S = 0.25
"""The shortest time between two reads of the map, so that failing polls cannot make a storm of them."""

DECODED_AT_ONCE = 100
"""How many rows of a page are decoded before sockets get their turn: about half a millisecond."""

MAX_LOGGED = 1000
"""So many facts of rows that cannot be shown, or read, are remembered, so that each is logged once."""

_Group = tuple[Store, str, int | None]
"""Which lookups may share a batch: the store as it is defined now, the address of the owner and, in a store with
bounds, the partition."""

log = structlog.get_logger(__name__)


class QueryClient:
    """Asks for each key at the instance that owns it, and tries others when that one fails."""

    def __init__(
        self,
        addresses: Sequence[str],
        timeout: float,
        batch_limit: int,
        *,
        credentials: grpc.ChannelCredentials | None = None,
        backoff_s: float = 1.0,
        clock: Callable[[], float] = time.monotonic,
        stale_after_ms: int = 5000,
        on_hidden: Callable[[str], None] = lambda _: None,
    ) -> None:
        """An attempt takes at most `timeout` seconds, and a lag below `stale_after_ms` is not told.

        `on_hidden` is called with the store of each row that had more hidden than its private fields. The other
        parameters are those of Router.
        """
        self._router = Router(
            addresses,
            credentials=credentials,
            backoff_s=backoff_s,
            monotonic=clock,
            error_of=_error_of,
            on_failure=self._note_failure,
        )
        self._timeout = timeout
        self._timeouts = (timeout,) * ATTEMPTS
        self._stale_after_ms = stale_after_ms
        self._on_hidden = on_hidden
        self._logged = set[tuple[str, Hashable, Hashable]]()
        self._gets: Coalescer[_Group, Query, RangeResult] = Coalescer(
            self._get_alone, self._get_together, max_batch=batch_limit, max_in_flight=MAX_CALLS
        )
        self.failed = asyncio.Event()
        """Set whenever an instance has failed."""

    def address(self, store: Store, query: Query) -> str:
        return self._router.address(store.name, query.group)

    async def poll(self, store: Store, queries: Sequence[Query]) -> list[Result]:
        """Returns the result of each query of one store, in their order; an error where no instance answers.

        They are asked at the owner of the first one. It forwards keys of others, and so does the next instance that is
        asked when it fails.
        """
        if len(parts := requests_of(queries)) > 1:
            return [each for part in parts for each in await self.poll(store, part)]
        call = partial(call_batch, batch(store, queries))
        answer = self._router.call(store.name, queries[0].group, call, self._timeouts)
        return await self._fitting(store, queries, await self._results(store, queries, answer))

    async def long_poll(self, store: Store, address: str, queries: Sequence[Query], max_wait: float) -> list[Result]:
        """Returns the results from one instance once one of them is newer, or after `max_wait` seconds."""
        call = partial(call_batch, batch(store, queries, max_wait))
        answer = self._router.call_at(address, call, max_wait + self._timeout)
        read = await self._results(store, queries, answer)
        if all(isinstance(each, MalformedFrameError) for each in read):
            return await self.poll(store, queries)  # it may be the wait that is refused
        return await self._fitting(store, queries, read)

    async def get(self, question: Question) -> Page:
        """Returns the row of a key; callers that ask at the same time share a batch. Raises RequestError."""
        store, query = question.store, Query.of(question)
        # A batch with bounds waits until its partitions meet them, so each has its own.
        partition = None if store.max_lag_ms is None else self._router.shards.partition(store.name, query.group)
        read = await self._gets.result((store, self.address(store, query), partition), query)
        return Page(read.states, "", read.position, read.through or read.position, read.lag_ms)

    async def scan(self, store: Store, scan: Scan, at_least: Position | None = None) -> Page:
        """Returns a page of a group as of `at_least` or a later position, or of many groups. Raises RequestError."""
        bounds = None if at_least is None else Bounds(at_least=position_message(at_least))
        request = ScanStatesRequest(store=store.name, bounds=bounds, **scan._asdict())
        response = await self._router.call(
            store.name,
            hash_group(scan.group) if scan.group else None,
            lambda channel, timeout: stub(channel).ScanStates(request, timeout=timeout),
            self._timeouts,
        )
        read = page(await decoded(store, response), response, self._stale_after_ms)
        self._note_rows(store, read.states)
        return read

    async def list_shards(self) -> ListShardsResponse:
        """Returns the shard map as an instance reports it, with the lag of each replica. Raises RequestError."""
        return await self._router.list_shards(2 * timeout for timeout in self._timeouts)

    async def refresh(self) -> ListShardsResponse | None:
        """Routes by the shard map as it is now; returns it, or None when it is as before. Raises RequestError."""
        listing = await self._router.refresh(2 * timeout for timeout in self._timeouts)
        await self._router.close_unused(self._timeout)
        return listing

    async def close(self) -> None:
        self._gets.close()
        await self._router.close()

    async def _get_alone(self, group: _Group, query: Query) -> RangeResult:
        [result] = await self.poll(group[0], [query])
        if isinstance(result, RequestError):
            raise result
        if not isinstance(result, RangeResult):
            text = f"the query service has left {query.question} out of its answer; try again in a moment"
            raise UnavailableError(text)
        return result

    async def _get_together(
        self, group: _Group, queries: Sequence[Query]
    ) -> Sequence[RangeResult | RequestError | None]:
        """Returns the result or error of each key, None where the answer left it out. Raises an error of all keys."""
        read = await self.poll(group[0], queries)
        if isinstance(read[0], RequestError) and all(each is read[0] for each in read):
            raise read[0]
        return [None if isinstance(each, Progress) else each for each in read]

    async def _fitting(self, store: Store, queries: Sequence[Query], read: list[Result]) -> list[Result]:
        """Asks again for keys that were refused or did not fit the answer; one that fails alone keeps its error."""
        left = [index for index, each in enumerate(read) if isinstance(each, RowTooLargeError | MalformedFrameError)]
        if len(queries) > 1:
            middle = len(left) // 2 if len(left) == len(queries) else len(left)
            for part in (each for each in (left[:middle], left[middle:]) if each):
                answers = await self.poll(store, [queries[index] for index in part])
                for index, answer in zip(part, answers, strict=True):
                    read[index] = answer
        return read

    async def _results(
        self, store: Store, queries: Sequence[Query], answer: Awaitable[BatchGetStatesResponse]
    ) -> list[Result]:
        try:
            read = self._read(store, queries, await answer)
        except RequestError as error:
            read = [error] * len(queries)
        for each in read:
            if isinstance(each, DeclinedError | MalformedFrameError | UnknownStoreError):
                reason = each.status if isinstance(each, DeclinedError) else each.code
                self._log_once(("query_declined", store.name, reason), store=store.name, reason=str(each))
        return read

    def _read(self, store: Store, queries: Sequence[Query], response: BatchGetStatesResponse) -> list[Result]:
        read = results(queries, response, self._stale_after_ms)
        for result in read:
            if isinstance(result, RangeResult):
                self._note_rows(store, result.states)
        return read

    def _note_rows(self, store: Store, states: Iterable[KeyState]) -> None:
        """Logs rows and private fields that cannot be shown, each once, however often the row is read."""
        for state in states:
            if isinstance(state.row, UnreadableRow):
                fact = "row_unreadable", state.key, state.position
                self._log_once(fact, store=store.name, key=str(state.key), reason=state.row.reason)
            elif state.private is not None and state.private.missed:
                self._on_hidden(store.name)
                path = state.private.missed
                self._log_once(("private_path_missed", store, path), store=store.name, path=path, key=str(state.key))

    def _log_once(self, fact: tuple[str, Hashable, Hashable], **fields: str) -> None:
        if fact not in self._logged:
            if len(self._logged) >= MAX_LOGGED:
                self._logged.clear()
            self._logged.add(fact)
            log.error(fact[0], **fields)

    def _note_failure(self, error: grpc.aio.AioRpcError, address: str, is_first: bool) -> None:
        if is_first:
            log.warning("query_instance_failed", address=address, status=error.code().name, reason=error.details())
        self.failed.set()


@dataclass
class ShardWatch:
    """Reads the stores and the shard map every `interval` seconds, and at once when an instance has failed.

    `take` takes each listing that is new; `reason_of` returns why there is no store to serve, or None.
    """

    client: QueryClient
    interval: float
    take: Callable[[ListShardsResponse], None]
    reason_of: Callable[[], str | None]
    reason: str | None = field(default="the query service has not answered yet", init=False)
    """Why the query service cannot be used; None while it answers."""

    async def run(self) -> None:
        while True:
            self.client.failed.clear()
            try:
                if (listing := await self.client.refresh()) is not None:
                    self.take(listing)
                reason = self.reason_of()
            except RequestError as error:
                reason = str(error)
            if reason is not None and self.reason is None:
                log.warning("query_service_lost", reason=reason)
            if reason is None and self.reason is not None:
                log.info("query_service_found")
            self.reason = reason
            await asyncio.sleep(RETRY_S)
            with suppress(TimeoutError):
                async with asyncio.timeout(RETRY_S if self.reason else self.interval):
                    await self.client.failed.wait()


async def decoded(store: Store, response: ScanStatesResponse) -> list[KeyState]:
    """Returns the rows of a page; other tasks get their turns meanwhile."""
    states = list[KeyState]()
    for state in rows(store, response):
        states.append(state)
        if len(states) % DECODED_AT_ONCE == 0:
            await asyncio.sleep(0)
    return states


def _error_of(error: grpc.aio.AioRpcError, address: str) -> RequestError:
    if error.code() not in RETRIED:
        return failure_of(error.code().value[0], error.details() or "")
    return UnavailableError(f"the query service does not answer ({address}: {error.details()}); try again in a moment")
