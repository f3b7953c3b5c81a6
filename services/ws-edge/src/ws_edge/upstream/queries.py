"""Queries as they go over the wire, and their results; with listed_stores, all that reads messages of query.v1."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from google.protobuf.message import DecodeError

from statecast.query.v1 import query_pb2
from statecast.query.v1.query_service_pb2 import BatchGetStatesRequest, BatchGetStatesResponse, ScanStatesResponse
from statecast.state.v1.state_pb2 import Position as PositionMessage
from statecast.state.v1.state_pb2 import StateKey
from statecast_client.limits import MAX_RESPONSE_BYTES
from statecast_client.shard_map import GroupHashes, hash_group
from ws_edge.errors import (
    DeclinedError,
    MalformedFrameError,
    RequestError,
    RowTooLargeError,
    UnavailableError,
    UnknownStoreError,
)
from ws_edge.model.private_fields import NOBODY, PrivateRow
from ws_edge.model.questions import Question
from ws_edge.model.states import KeyState, Position, StoreKey, UnreadableRow
from ws_edge.model.stores import Store

MAX_REQUEST_BYTES = 3 << 20
"""The most that the queries of a request take together: a query service reads requests of 4 MiB by default."""

INVALID_ARGUMENT = 3
NOT_FOUND = 5
RESOURCE_EXHAUSTED = 8
CANCELLED, UNKNOWN, DEADLINE_EXCEEDED, INTERNAL, UNAVAILABLE = 1, 2, 4, 13, 14
PASSING = frozenset({CANCELLED, UNKNOWN, DEADLINE_EXCEEDED, RESOURCE_EXHAUSTED, INTERNAL, UNAVAILABLE})
"""The statuses that pass by themselves: of an instance that is not well, or has too much to do."""


class Query(NamedTuple):
    """A question that is asked, encoded once and sent as often as its position stays."""

    question: Question
    after: Position | None
    whole: bool
    """Whether all of a range is requested, even when nothing has changed."""
    group: GroupHashes
    encoded: bytes
    """The query as the only one of a BatchGetStatesRequest: concatenated encodings are the merged message."""

    @staticmethod
    def of(
        question: Question, after: Position | None = None, whole: bool = False, group: GroupHashes | None = None
    ) -> "Query":
        """Returns the query for states newer than `after`. `group` are the hashes of its group, when known."""
        position = None if after is None else position_message(after)
        request = BatchGetStatesRequest()
        if question.is_key:
            request.keys.add(key=StateKey(group=question.group), after=position)
        else:
            query = request.ranges.add(limit=question.limit, reverse=question.reverse, after=position, whole=whole)
            query.group, query.sort_from, query.sort_to = question.group, question.sort_from, question.sort_to
        return Query(question, after, whole, group or hash_group(question.group), request.SerializeToString())

    def newer_than(self, position: Position | None, whole: bool = False) -> "Query":
        """Returns the query for states newer than `position`: this one when that and `whole` stay the same."""
        is_same = (position, whole) == (self.after, self.whole)
        return self if is_same else Query.of(self.question, position, whole, self.group)


@dataclass(frozen=True, slots=True)
class RangeResult:
    """The changes in a range after `after`, or all that is in it; see statecast.query.v1.RangeResult.

    That of a key is the range of one, with all that has ever been removed.
    """

    after: Position | None
    position: Position
    whole: bool
    more: bool
    states: list[KeyState]
    removals: list[KeyState]
    """Members that are no longer in the range; they have no row."""
    removals_complete: bool
    lag_ms: int = 0
    """For how long it may have been out of date, in milliseconds; 0 for a short time."""
    through: Position | None = None
    """Up to where the replica that answered has read the partition, if it says so."""


class Progress(NamedTuple):
    """Nothing has changed; `position` is up to where the replica has read the partition, if it says so."""

    position: Position | None = None
    lag_ms: int = 0
    """As in RangeResult."""


Result = RangeResult | Progress | RequestError
"""The result of a query: something newer, nothing newer, or a failure."""


class Scan(NamedTuple):
    """A query for a page of a group, or, for the empty one, of all groups from `group_from` to below `group_to`.

    Of each it reads from `sort_from` to below `sort_to`; empty is open, and `page_size` 0 the default.
    """

    group: str
    sort_from: str = ""
    sort_to: str = ""
    reverse: bool = False
    page_size: int = 0
    page_token: str = ""
    group_from: str = ""
    group_to: str = ""


class Page(NamedTuple):
    """Some rows in the order of their keys; the token of the last page is empty."""

    states: list[KeyState]
    next_page_token: str
    position: Position
    """As of which a group was read, that of a key's last change; of a whole store it says nothing."""
    through: Position
    """Up to where the replica that answered has read the partition; that of a whole store is of its first."""
    lag_ms: int
    """As in RangeResult."""


def requests_of(queries: Iterable[Query]) -> list[list[Query]]:
    """Returns the queries, in their order, in as few requests as may take them."""
    requests, size = list[list[Query]](), 0
    for query in queries:
        size += len(query.encoded)
        if not requests or size > MAX_REQUEST_BYTES:
            requests.append([])
            size = len(query.encoded)
        requests[-1].append(query)
    return requests


def batch(store: Store, queries: Iterable[Query], max_wait: float = 0.0) -> bytes:
    """Encodes a BatchGetStatesRequest, which the service holds for `max_wait` seconds until something is newer."""
    request = BatchGetStatesRequest(store=store.name, max_response_bytes=MAX_RESPONSE_BYTES)
    if store.max_lag_ms is not None:
        request.bounds.max_lag_ms = store.max_lag_ms
    if max_wait:
        request.max_wait.FromNanoseconds(int(max_wait * 1e9))
    return request.SerializeToString() + b"".join(query.encoded for query in queries)


def results(queries: Sequence[Query], response: BatchGetStatesResponse, stale_after_ms: int) -> list[Result]:
    """Returns the result of each query, in their order; a lag below `stale_after_ms` is not told.

    A row that fits into no answer is an UnreadableRow where it was asked for alone; else RowTooLargeError.
    """
    is_alone = len(queries) == 1
    unchanged = [Progress()] * len(queries)
    keys, ranges = list[int](), list[int]()
    for index, query in enumerate(queries):
        (keys if query.question.is_key else ranges).append(index)
    for freshness in response.freshness:
        progress = Progress(_position(freshness.current_through), _lag_ms(freshness, stale_after_ms))
        for place in freshness.keys:
            unchanged[keys[place]] = progress
        for place in freshness.ranges:
            unchanged[ranges[place]] = progress
    ordered: list[Result] = [*unchanged]
    for key_result in response.results:
        index = keys[key_result.index]
        ordered[index] = _result(queries[index], key_result, unchanged[index], is_alone=is_alone)
    for range_result in response.ranges:
        index = ranges[range_result.index]
        ordered[index] = _result(queries[index], range_result, unchanged[index], is_alone=is_alone)
    return ordered


def rows(store: Store, response: ScanStatesResponse) -> Iterator[KeyState]:
    """Returns the rows of a page, and decodes each when it is taken."""
    return (_decode(store, _key(store, state.key), state) for state in response.states)


def page(states: list[KeyState], response: ScanStatesResponse, stale_after_ms: int) -> Page:
    """Returns a page with its rows."""
    freshness = response.freshness
    position, lag_ms = _position(freshness.current_through), _lag_ms(freshness, stale_after_ms)
    return Page(states, response.next_page_token, position, position, lag_ms)


def failure_of(status: int, text: str) -> RequestError:
    """Returns the edge's error for a status of the query service; this is the one place that maps them."""
    if status == NOT_FOUND:
        return UnknownStoreError(text)
    if status == INVALID_ARGUMENT:
        return MalformedFrameError(text)
    reason = f"no answer from the query service, which is asked again: {text}"
    return UnavailableError(reason) if status in PASSING else DeclinedError(reason, status)


def position_message(position: Position) -> PositionMessage:
    return PositionMessage(epoch=position.epoch, offset=position.offset)


def _result(
    query: Query, result: query_pb2.KeyResult | query_pb2.RangeResult, progress: Progress, *, is_alone: bool
) -> Result:
    if result.HasField("error"):
        return _failed_result(query, result.error, progress, is_alone=is_alone)
    if isinstance(result, query_pb2.RangeResult):
        return _range_result(query, result, progress)
    return _key_result(query, result, progress)


def _failed_result(query: Query, error: query_pb2.KeyError, progress: Progress, *, is_alone: bool) -> Result:
    question, position = query.question, progress.position
    if error.code != RESOURCE_EXHAUSTED:
        return failure_of(error.code, error.message)
    if not is_alone or not question.is_key or position is None:
        return RowTooLargeError(f"{question} is not read, what you have of it is old: {error.message}")
    store, row = question.store, UnreadableRow(error.message, RowTooLargeError)
    owner = store.rule.owner_by_group(question.group)
    return _of_key(position, [KeyState(StoreKey(store.name, question.group), position, row, owner)], [], progress)


def _key_result(query: Query, result: query_pb2.KeyResult, progress: Progress) -> RangeResult:
    store, states, removals = query.question.store, list[KeyState](), list[KeyState]()
    key = StoreKey(store.name, query.question.group)
    if result.HasField("state"):
        position = _position(result.state.position)
        states.append(_decode(store, key, result.state))
    else:
        absence = result.absence
        position = _position(absence.position)
        since = _position(absence.unchanged_since) if absence.HasField("unchanged_since") else position
        removals.append(KeyState(key, since, commit_ns=_commit_ns(absence)))
    return _of_key(position, states, removals, progress)


def _of_key(position: Position, states: list[KeyState], removals: list[KeyState], progress: Progress) -> RangeResult:
    content = True, False, states, removals, True
    return RangeResult(Position(position.epoch, -1), position, *content, progress.lag_ms, progress.position)


def _range_result(query: Query, result: query_pb2.RangeResult, progress: Progress) -> RangeResult:
    store = query.question.store
    states = [_decode(store, _key(store, state.key), state) for state in result.states]
    removals = [
        KeyState(_key(store, removal.key), _position(removal.absence.position), commit_ns=_commit_ns(removal.absence))
        for removal in result.removals
    ]
    kind = result.whole, result.more, states, removals, result.removals_complete
    return RangeResult(query.after, _position(result.position), *kind, progress.lag_ms, progress.position)


def _decode(store: Store, key: StoreKey, state: query_pb2.State) -> KeyState:
    """Returns the state of the key. Its row is an UnreadableRow when the payload is not of the store's message."""
    try:
        row = store.decode(state.payload)
    except DecodeError as error:
        reason = UnreadableRow(f"it is not a {store.kind}: {error}")
        return KeyState(key, _position(state.position), reason, store.rule.owner_by_group(key.group))
    private = PrivateRow(row, store.private) if store.private else None
    shown = row if private is None else private.seen_by(NOBODY)
    return KeyState(key, _position(state.position), shown, store.owner_of(row), _commit_ns(state), private=private)


def _key(store: Store, key: StateKey) -> StoreKey:
    return StoreKey(store.name, key.group, key.sort, key.member)


def _commit_ns(change: query_pb2.State | query_pb2.Absence) -> int | None:
    return change.commit_time.ToNanoseconds() if change.HasField("commit_time") else None


def _lag_ms(freshness: query_pb2.Freshness, stale_after_ms: int) -> int:
    return freshness.lag_ms if freshness.lag_ms >= stale_after_ms else 0


def _position(position: PositionMessage) -> Position:
    return Position(position.epoch, position.offset)
