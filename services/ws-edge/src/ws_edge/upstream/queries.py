"""Queries as they go over the wire, and their results; with listed_stores, all that reads messages of query.v1."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from google.protobuf.message import DecodeError

from statecast.query.v1 import query_pb2
from statecast.query.v1.query_service_pb2 import BatchGetStatesRequest, BatchGetStatesResponse, ScanStatesResponse
from statecast.state.v1.state_pb2 import Position as PositionMessage
from statecast.state.v1.state_pb2 import StateKey
from statecast_client.limits import MAX_RESPONSE_BYTES
from statecast_client.shard_map import GroupHashes, hash_group
from ws_edge.errors import MalformedFrameError, RequestError, RowTooLargeError, UnavailableError, UnknownStoreError
from ws_edge.model.private_fields import NOBODY, PrivateRow
from ws_edge.model.questions import Question
from ws_edge.model.states import AnyKey, KeyState, Position, RangeKey, StoreKey, UnreadableRow
from ws_edge.model.stores import Store

INVALID_ARGUMENT = 3
NOT_FOUND = 5
RESOURCE_EXHAUSTED = 8


class Query(NamedTuple):
    """A query for a key or a range, encoded once and sent as often as its position stays."""

    key: AnyKey | Question
    after: Position | None
    whole: bool
    """Of a range: whether all of it is asked for, even when nothing has changed."""
    group: GroupHashes
    encoded: bytes
    """The query as the only one of a BatchGetStatesRequest: concatenated encodings are the merged message."""

    @staticmethod
    def of(
        key: AnyKey | Question, after: Position | None = None, whole: bool = False, group: GroupHashes | None = None
    ) -> "Query":
        """Returns the query for states newer than `after`. `group` are the hashes of the key's group, when known."""
        position = None if after is None else position_message(after)
        request = BatchGetStatesRequest()
        if isinstance(key, StoreKey):
            request.keys.add(key=key_message(key), after=position)
        elif isinstance(key, Question) and key.is_key:
            request.keys.add(key=StateKey(group=key.group), after=position)
        else:
            query = request.ranges.add(limit=key.limit, reverse=key.reverse, after=position, whole=whole)
            query.group, query.sort_from, query.sort_to = key.group, key.sort_from, key.sort_to
        return Query(key, after, whole, group or hash_group(key.group), request.SerializeToString())

    @property
    def is_range(self) -> bool:
        """Whether it stands among the ranges of a request, not among its keys."""
        return not self.key.is_key if isinstance(self.key, Question) else isinstance(self.key, RangeKey)

    def newer_than(self, position: Position | None, whole: bool = False) -> "Query":
        """Returns the query for states newer than `position`: this one when that and `whole` stay the same."""
        is_same = (position, whole) == (self.after, self.whole)
        return self if is_same else Query.of(self.key, position, whole, self.group)


@dataclass(frozen=True, slots=True)
class RangeResult:
    """The changes in a range after `after`, or all that is in it; see statecast.query.v1.RangeResult."""

    after: Position | None
    position: Position
    whole: bool
    more: bool
    states: list[KeyState]
    removals: list[KeyState]
    """Members that are no longer in the range; they have no row."""
    removals_complete: bool
    lag_ms: int = 0
    """As in KeyState."""


class Progress(NamedTuple):
    """Nothing has changed; `position` is up to where, of a range."""

    position: Position | None = None
    lag_ms: int = 0
    """As in KeyState."""


Result = KeyState | RangeResult | Progress | RequestError
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
    """As of which a group was read; of a whole store it says nothing."""
    lag_ms: int
    """As in KeyState."""


def batch(store: Store, queries: Iterable[Query], max_wait: float = 0.0) -> bytes:
    """Encodes a BatchGetStatesRequest, which the service holds for `max_wait` seconds until something is newer."""
    request = BatchGetStatesRequest(store=store.name, max_response_bytes=MAX_RESPONSE_BYTES)
    if store.max_lag_ms is not None:
        request.bounds.max_lag_ms = store.max_lag_ms
    if max_wait:
        request.max_wait.FromNanoseconds(int(max_wait * 1e9))
    return request.SerializeToString() + b"".join(query.encoded for query in queries)


def results(
    store: Store, queries: Sequence[Query], response: BatchGetStatesResponse, stale_after_ms: int
) -> list[Result]:
    """Returns the result of each query, in their order; a lag below `stale_after_ms` is not told."""
    unchanged = [Progress()] * len(queries)
    keys, ranges = list[int](), list[int]()
    for index, query in enumerate(queries):
        (ranges if query.is_range else keys).append(index)
    for freshness in response.freshness:
        position, lag_ms = _position(freshness.current_through), _lag_ms(freshness, stale_after_ms)
        for place in freshness.keys if lag_ms else ():
            unchanged[keys[place]] = Progress(None, lag_ms)
        for place in freshness.ranges:
            unchanged[ranges[place]] = Progress(position, lag_ms)
    ordered: list[Result] = [*unchanged]
    for key_result in response.results:
        index = keys[key_result.index]
        ordered[index] = _result(store, queries[index], key_result, unchanged[index].lag_ms)
    for range_result in response.ranges:
        index = ranges[range_result.index]
        ordered[index] = _result(store, queries[index], range_result, unchanged[index].lag_ms)
    return ordered


def page(store: Store, response: ScanStatesResponse, stale_after_ms: int) -> Page:
    """Returns the rows of a page."""
    states, freshness = [_decode(store, _key(store, state.key), state) for state in response.states], response.freshness
    position, lag_ms = _position(freshness.current_through), _lag_ms(freshness, stale_after_ms)
    return Page(states, response.next_page_token, position, lag_ms)


def failure_of(status: int, text: str) -> RequestError:
    """Returns the edge's error for a status of the query service; this is the one place that maps them."""
    if status == NOT_FOUND:
        return UnknownStoreError(text)
    if status == INVALID_ARGUMENT:
        return MalformedFrameError(text)
    return UnavailableError(f"no answer from the query service, which is asked again: {text}")


def key_message(key: StoreKey) -> StateKey:
    return StateKey(group=key.group, sort=key.sort, member=key.member)


def position_message(position: Position) -> PositionMessage:
    return PositionMessage(epoch=position.epoch, offset=position.offset)


def _result(store: Store, query: Query, result: query_pb2.KeyResult | query_pb2.RangeResult, lag_ms: int) -> Result:
    if result.HasField("error"):
        if result.error.code == RESOURCE_EXHAUSTED:
            return RowTooLargeError(f"{query.key} is not read, what you have of it is old: {result.error.message}")
        return failure_of(result.error.code, result.error.message)
    if isinstance(result, query_pb2.RangeResult):
        return _range_result(store, query, result, lag_ms)
    if isinstance(query.key, Question):
        return _range_of_one(_key_state(store, StoreKey(store.name, query.key.group), result), lag_ms)
    state = _key_state(store, query.key, result)
    state.lag_ms = lag_ms
    return state


def _range_of_one(state: KeyState, lag_ms: int) -> RangeResult:
    """The state of a key as that of a range: all of it, with all that has ever been removed."""
    position, beginning = state.position, Position(state.position.epoch, -1)
    if state.row is not None:
        return RangeResult(beginning, position, True, False, [state], [], True, lag_ms)
    removal = KeyState(state.key, state.absent_after or position, commit_ns=state.commit_ns)
    return RangeResult(beginning, position, True, False, [], [removal], True, lag_ms)


def _key_state(store: Store, key: AnyKey, result: query_pb2.KeyResult) -> KeyState:
    assert isinstance(key, StoreKey)  # noqa: S101  the results of ranges stand elsewhere
    if result.HasField("state"):
        return _decode(store, key, result.state)
    absence = result.absence
    after = _position(absence.unchanged_since) if absence.HasField("unchanged_since") else None
    position, commit_ns = _position(absence.position), _commit_ns(absence)
    return KeyState(key, position, deleted=absence.deleted, commit_ns=commit_ns, absent_after=after)


def _range_result(store: Store, query: Query, result: query_pb2.RangeResult, lag_ms: int) -> Result:
    states = [_decode(store, _key(store, state.key), state) for state in result.states]
    removals = [
        KeyState(_key(store, removal.key), _position(removal.absence.position), commit_ns=_commit_ns(removal.absence))
        for removal in result.removals
    ]
    kind = result.whole, result.more, states, removals, result.removals_complete
    return RangeResult(query.after, _position(result.position), *kind, lag_ms)


def _decode(store: Store, key: StoreKey, state: query_pb2.State) -> KeyState:
    """Returns the state of the key. Its row is an UnreadableRow when the payload is not of the store's message."""
    try:
        row = store.decode(state.payload)
    except DecodeError as error:
        reason = UnreadableRow(f"it is not a {store.kind}: {error}")
        return KeyState(key, _position(state.position), reason, store.rule.owner_by_key(key))
    private = PrivateRow(row, store.private) if store.private else None
    decoded = KeyState(key, _position(state.position), row, store.owner_of(row), private=private)
    if private is not None:
        decoded.row = private.seen_by(NOBODY)
    decoded.commit_ns, decoded.size = _commit_ns(state), len(state.payload)
    return decoded


def _key(store: Store, key: StateKey) -> StoreKey:
    return StoreKey(store.name, key.group, key.sort, key.member)


def _commit_ns(change: query_pb2.State | query_pb2.Absence) -> int | None:
    return change.commit_time.ToNanoseconds() if change.HasField("commit_time") else None


def _lag_ms(freshness: query_pb2.Freshness, stale_after_ms: int) -> int:
    return freshness.lag_ms if freshness.lag_ms >= stale_after_ms else 0


def _position(position: PositionMessage) -> Position:
    return Position(position.epoch, position.offset)
