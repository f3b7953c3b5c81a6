"""Single lookups of a client: those that are under way together are one batch for each owner."""

import asyncio
import time
from collections.abc import Awaitable, Iterator, Sequence
from copy import copy
from functools import partial

import grpc.aio

from statecast.coalescing import Coalescer
from statecast.query.v1 import query_pb2
from statecast.query.v1 import query_service_pb2 as query
from statecast.state.v1 import state_pb2
from statecast_client.errors import AbsentError, InvalidError, OverloadedError, StatecastError, error_of_key
from statecast_client.keys import not_unicode
from statecast_client.limits import MAX_CALLS, MAX_KEYS, MAX_RESPONSE_BYTES
from statecast_client.router import Router, call_batch
from statecast_client.shard_map import hash_group

_GET_METHOD = "/statecast.query.v1.QueryService/GetState"

_MAX_SHORT = 100
_SHORT_QUERIES = tuple(bytes((18, size + 4, 10, size + 2, 10, size)) for size in range(_MAX_SHORT))
"""The bytes before a short group that is the whole key of a KeyQuery in a BatchGetStatesRequest, by the size."""

_APART_S = 1.0
_PAUSE_S, _MAX_PAUSE_S = 0.01, 0.5
"""How long an instance that refuses a batch is left in peace: at first, and at most."""
_OWN_ERRORS = (5, 8, 9)
"""Errors of a key that need no second question: NOT_FOUND, RESOURCE_EXHAUSTED, FAILED_PRECONDITION."""

Batch = tuple[str, str, bytes, int | None]
"""The common properties of lookups that may go together, plain for speed: store, address, encoded bounds, partition.

Nothing may delay one of them that would not delay the others. So those with bounds, which wait until a partition meets
them, are of one partition, and so are, for a second, those of a partition that the instance could not answer itself. Of
all others, the partition is None.
"""

Get = tuple[str, bytes, float]
"""One lookup, plain for speed: its group, the key as the only one of an encoded BatchGetStatesRequest, its deadline."""

Answer = query.GetStateResponse | Exception | None


class Gets:
    """Each caller has its own deadline, bounds and error, as if it had asked alone."""

    def __init__(self, router: Router) -> None:
        self._router = router
        self._coalescer = Coalescer(self._alone, self._together, max_batch=MAX_KEYS, max_in_flight=MAX_CALLS)
        self._apart_until: dict[tuple[str, int | None], float] = {}

    def answer(
        self, store: str, key: str | state_pb2.StateKey, bounds: query_pb2.Bounds | None, deadline: float
    ) -> Awaitable[query.GetStateResponse]:
        """Returns the answer of the owner of a key, or of another instance. Raises a StatecastError."""
        group = key if isinstance(key, str) else key.group
        try:
            address, partition = self._router.owner(store, group)
            get = group, encoded_query(key), deadline
        except UnicodeEncodeError as error:
            raise not_unicode(error) from error
        batch: Batch
        if bounds is not None:
            batch = store, address, bounds.SerializeToString(deterministic=True), partition
        elif self._apart_until and self._is_apart(store, partition):
            batch = store, address, b"", partition
        else:
            batch = store, address, b"", None
        if not group or "\0" in group:  # refused, and with it all that go together with it
            return self._alone(batch, get)
        return self._coalescer.result(batch, get)

    async def _alone(self, batch: Batch, get: Get) -> query.GetStateResponse:
        store, _, bounds, _ = batch
        group, encoded, deadline = get
        [key_query] = query.BatchGetStatesRequest.FromString(encoded).keys
        request = query.GetStateRequest(store=store, key=key_query.key)
        if bounds:
            request.bounds.MergeFromString(bounds)

        def call(channel: grpc.aio.Channel, timeout_s: float) -> Awaitable[query.GetStateResponse]:
            method: grpc.aio.UnaryUnaryMultiCallable[query.GetStateRequest, query.GetStateResponse]
            method = channel.unary_unary(
                _GET_METHOD, query.GetStateRequest.SerializeToString, query.GetStateResponse.FromString
            )
            return method(request, timeout=timeout_s)

        return await self._router.call(store, hash_group(group) if group else None, call, halves(deadline))

    async def _together(self, batch: Batch, gets: Sequence[Get]) -> Sequence[Answer]:
        """Asks for all at once, and for half as many after a refusal: of one of them, or of so many together.

        An instance that has too much to do is left in peace for longer each time. Once it refuses a single lookup, all
        that are left have its error, and it is not asked for them.
        """
        if len(gets) == 1:
            return [await self._alone(batch, gets[0])]
        ordered: list[Answer] = [None] * len(gets)
        left, size, growth, pause_s = list(range(len(gets))), len(gets), 2, _PAUSE_S
        while left:
            part = left[:size]
            try:
                answered = await self._asked(batch, [gets[index] for index in part])
            except InvalidError:
                left = left if len(part) > 1 else left[1:]  # asked for alone, it has its own error
                size = (len(part) + 1) // 2
                continue
            except StatecastError as error:
                if len(part) == 1 or not isinstance(error, OverloadedError):
                    for index in left:
                        ordered[index] = copy(error)
                    return ordered
                await asyncio.sleep(pause_s)
                size, growth, pause_s = len(part) // 2, 1, min(2 * pause_s, _MAX_PAUSE_S)
                continue
            for index, answer in zip(part, answered, strict=True):
                ordered[index] = None if isinstance(answer, OverloadedError) else answer
            unfit = [index for index, answer in zip(part, answered, strict=True) if isinstance(answer, OverloadedError)]
            left = (unfit if len(unfit) < len(part) else []) + left[size:]  # they may fit without the others
            size *= growth
        return ordered

    async def _asked(self, batch: Batch, gets: Sequence[Get]) -> Sequence[Answer]:
        call = partial(call_batch, encoded_batch(batch, gets))
        groups, _, deadlines = zip(*gets, strict=True)
        response = await self._router.call(batch[0], hash_group(groups[0]), call, halves(min(deadlines)))
        self._note_apart(batch[0], groups, response)
        return answers(batch[0], groups, response)

    def _is_apart(self, store: str, partition: int | None) -> bool:
        until = self._apart_until.get((store, partition))
        if until is not None and until <= time.monotonic():
            del self._apart_until[store, partition]
        return until is not None

    def _note_apart(self, store: str, groups: Sequence[str], response: query.BatchGetStatesResponse) -> None:
        """Notes the partitions that the instance has not answered itself."""
        until = time.monotonic() + _APART_S
        for freshness in response.freshness:
            if freshness.forwarded:
                self._apart_until[store, freshness.partition] = until
        for result in response.results:
            if result.HasField("error"):
                self._apart_until[store, self._router.shards.partition_of(store, groups[result.index])] = until


def halves(deadline: float, wait_s: float = 0.0) -> Iterator[float]:
    """Yields the timeouts of two calls: the first gets half of the remaining time, the second all of it."""
    for share in (0.5, 1.0):
        yield wait_s + (deadline - time.monotonic()) * share


def encoded_query(key: str | state_pb2.StateKey) -> bytes:
    if isinstance(key, str):
        group = key.encode()
        if len(group) < _MAX_SHORT:
            return _SHORT_QUERIES[len(group)] + group
        key = state_pb2.StateKey(group=key)
    return query.BatchGetStatesRequest(keys=[query_pb2.KeyQuery(key=key)]).SerializeToString()


def encoded_batch(batch: Batch, gets: Sequence[Get]) -> bytes:
    store, _, bounds, _ = batch
    request = query.BatchGetStatesRequest(store=store, max_response_bytes=MAX_RESPONSE_BYTES)
    if bounds:
        request.bounds.MergeFromString(bounds)
    return request.SerializeToString() + b"".join([encoded for _, encoded, _ in gets])


def answers(store: str, groups: Sequence[str], response: query.BatchGetStatesResponse) -> Sequence[Answer]:
    """Returns the answer that each lookup would have got alone. It is None when only asking alone can tell."""
    ordered: list[Answer] = [None] * len(groups)
    freshness = _freshness_by_key(response, len(groups))
    for result in response.results:
        index = result.index
        known = freshness[index]
        if result.HasField("error"):
            if result.error.code in _OWN_ERRORS:
                ordered[index] = error_of_key(result.error)
        elif known is None:
            continue
        elif result.HasField("state"):
            answer = query.GetStateResponse.FromString(known)
            answer.state.MergeFrom(result.state)
            ordered[index] = answer
        else:
            ordered[index] = _absent(store, groups[index], result.absence, known)
    return ordered


def _freshness_by_key(response: query.BatchGetStatesResponse, size: int) -> list[bytes | None]:
    """Returns, for each key, the freshness of its partition as the only field of an encoded GetStateResponse."""
    by_key: list[bytes | None] = [None] * size
    for freshness in response.freshness:
        keys = list(freshness.keys)
        freshness.ClearField("keys")
        encoded = query.GetStateResponse(freshness=freshness).SerializeToString()
        for index in keys:
            by_key[index] = encoded
    return by_key


def _absent(store: str, group: str, absence: query_pb2.Absence, freshness: bytes) -> AbsentError:
    absence.ClearField("unchanged_since")  # which a batch says, and a single lookup does not
    text = f"key: `{group}` has no value in `{store}`"
    return AbsentError(text, absence, query.GetStateResponse.FromString(freshness).freshness)
