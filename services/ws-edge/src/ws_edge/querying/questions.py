"""Lookups as they go over the wire, and what their answers say; the only module that reads query.v1 values."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from google.protobuf.message import DecodeError

from statecast.query.v1.query_pb2 import Absence, KeyQuery, KeyResult, RangeQuery, RangeResult, State
from statecast.query.v1.query_pb2 import KeyError as KeyErrorProto
from statecast.query.v1.query_service_pb2 import BatchGetStatesRequest, BatchGetStatesResponse, ScanStatesResponse
from statecast.state.v1.state_pb2 import Position as PositionProto
from statecast.state.v1.state_pb2 import StateKey
from ws_edge.errors import MalformedFrameError, RequestError, UnavailableError, UnknownStoreError
from ws_edge.querying.partitioning import group_hash
from ws_edge.states import Position, RangeKey, StoreKey, Version
from ws_edge.stores import Store

INVALID_ARGUMENT = 3
NOT_FOUND = 5


class Removal(NamedTuple):
    """A member that is no longer in its range; `commit_ns` is as in Version."""

    key: StoreKey
    position: Position
    commit_ns: int | None


@dataclass(frozen=True, slots=True)
class RangeAnswer:
    """What has changed in a range since `after`, or all that is in it; see statecast.query.v1.RangeResult."""

    after: Position | None
    position: Position
    whole: bool
    more: bool
    versions: list[Version]
    removals: list[Removal]
    removals_complete: bool


class Progress(NamedTuple):
    """Nothing has changed in a range through this position."""

    position: Position


Answer = Version | RangeAnswer | Progress | RequestError | None
"""What a lookup came to: something newer, nothing newer through a position, a failure, or nothing newer."""


class Question(NamedTuple):
    """One key to look up, encoded once and asked as often as its position stays."""

    key: StoreKey
    after: Position | None
    group_hash: int
    encoded: bytes
    """The question as the only key of a BatchGetStatesRequest: concatenated encodings are the merged message."""

    def since(self, position: Position | None) -> "Question":
        """The same question for what is newer than `position`."""
        return self if position == self.after else question(self.key, position, self.group_hash)


class RangeQuestion(NamedTuple):
    """One range to look up, encoded as Question is; with `whole` everything in it is to be told."""

    key: RangeKey
    after: Position | None
    whole: bool
    group_hash: int
    encoded: bytes


AnyQuestion = Question | RangeQuestion


def range_question(key: RangeKey, after: Position | None, whole: bool, known_hash: int | None = None) -> RangeQuestion:
    """Encodes the question what has changed in a range since `after`, or what is in it."""
    query = RangeQuery(
        group=key.group,
        sort_from=key.sort_from,
        sort_to=key.sort_to,
        limit=key.limit,
        reverse=key.reverse,
        whole=whole,
    )
    if after is not None:
        query.after.epoch, query.after.offset = after
    encoded = BatchGetStatesRequest(ranges=[query]).SerializeToString()
    return RangeQuestion(key, after, whole, group_hash(key.group) if known_hash is None else known_hash, encoded)


def question(key: StoreKey, after: Position | None = None, known_hash: int | None = None) -> Question:
    """Encodes the question what `key` holds that is newer than `after`."""
    query = KeyQuery(key=StateKey(group=key.group, sort=key.sort, member=key.member))
    if after is not None:
        query.after.epoch, query.after.offset = after
    encoded = BatchGetStatesRequest(keys=[query]).SerializeToString()
    return Question(key, after, group_hash(key.group) if known_hash is None else known_hash, encoded)


def batch(store: Store, questions: Sequence[AnyQuestion], max_wait: float = 0.0) -> bytes:
    """The encoded BatchGetStatesRequest of the questions, all of this store.

    With `max_wait` the answer is held back, for so many seconds at most, until there is something newer.
    """
    request = BatchGetStatesRequest(store=store.name)
    if max_wait:
        request.max_wait.FromNanoseconds(int(max_wait * 1e9))
    return request.SerializeToString() + b"".join(each.encoded for each in questions)


def answers(
    store: Store, questions: Sequence[AnyQuestion], response: BatchGetStatesResponse, partitions: int | None
) -> list[Answer]:
    """The answer to each question, in their order. `partitions` of the store, when it is known, tells progress."""
    found: list[Answer] = [None] * len(questions)
    keys = [place for place, each in enumerate(questions) if isinstance(each, Question)]
    ranges = [place for place, each in enumerate(questions) if isinstance(each, RangeQuestion)]
    if ranges and partitions:
        _fill_progress(found, questions, ranges, response, partitions)
    for result in response.results:
        place = keys[result.index]
        found[place] = _key_answer(store, questions[place], result)
    for told in response.ranges:
        place = ranges[told.index]
        found[place] = _range_answer(store, questions[place], told)
    return found


def _fill_progress(
    found: list[Answer],
    questions: Sequence[AnyQuestion],
    ranges: list[int],
    response: BatchGetStatesResponse,
    partitions: int,
) -> None:
    reached = {each.partition: _position(each.current_through) for each in response.freshness}
    for place in ranges:
        position = reached.get(questions[place].group_hash % partitions)
        if position is not None and position != questions[place].after:
            found[place] = Progress(position)


def _key_answer(store: Store, asked: AnyQuestion, result: KeyResult) -> Answer:
    assert isinstance(asked, Question)  # noqa: S101  the places of keys are those of such questions
    if result.HasField("state"):
        return version_of_state(store, asked.key, result.state)
    if result.HasField("absence"):
        return _version_of_absence(asked.key, result.absence)
    return failure(result.error)


def _range_answer(store: Store, asked: AnyQuestion, result: RangeResult) -> Answer:
    if result.HasField("error"):
        return failure(result.error)
    versions: list[Version] = []
    for state in result.states:
        version = version_of_state(store, _member_key(store, state.key), state)
        if isinstance(version, RequestError):
            return version
        versions.append(version)
    removals = [
        Removal(_member_key(store, each.key), _position(each.absence.position), _commit_ns(each.absence))
        for each in result.removals
    ]
    position = _position(result.position)
    return RangeAnswer(asked.after, position, result.whole, result.more, versions, removals, result.removals_complete)


def _member_key(store: Store, key: StateKey) -> StoreKey:
    return StoreKey(store.name, key.group, key.sort, key.member)


def page(store: Store, group: str, response: ScanStatesResponse) -> list[Version]:
    """The rows of a page, in its order. A row that cannot be decoded fails the page with UnavailableError."""
    versions = []
    for state in response.states:
        version = version_of_state(store, StoreKey(store.name, group, state.key.sort, state.key.member), state)
        if isinstance(version, RequestError):
            raise version
        versions.append(version)
    return versions


def version_of_state(store: Store, key: StoreKey, state: State) -> Version | RequestError:
    """What the key holds; UnavailableError when the row is not of the store's message."""
    try:
        row = store.message.FromString(state.payload)
    except DecodeError:
        return UnavailableError(f"the row of {key} is not a {store.message.DESCRIPTOR.full_name}; tell the operators")
    commit_ns = state.commit_time.ToNanoseconds() if state.HasField("commit_time") else None
    return Version(key, _position(state.position), row, store.rule.owner_of(row), False, commit_ns, len(state.payload))


def failure(error: KeyErrorProto) -> RequestError:
    """The edge's error for a key that the query service could not look up."""
    return failure_of(error.code, error.message)


def failure_of(code: int, text: str) -> RequestError:
    """The edge's error for a status of the query service; this is the one place that maps them."""
    if code == NOT_FOUND:
        return UnknownStoreError(text)
    if code == INVALID_ARGUMENT:
        return MalformedFrameError(text)
    return UnavailableError(f"no answer from the query service, which is asked again: {text}")


def _version_of_absence(key: StoreKey, absence: Absence) -> Version:
    since = _position(absence.unchanged_since) if absence.HasField("unchanged_since") else None
    commit_ns = _commit_ns(absence)
    return Version(
        key, _position(absence.position), deleted=absence.deleted, commit_ns=commit_ns, unchanged_since=since
    )


def _commit_ns(absence: Absence) -> int | None:
    return absence.commit_time.ToNanoseconds() if absence.HasField("commit_time") else None


def _position(position: PositionProto) -> Position:
    return Position(position.epoch, position.offset)
