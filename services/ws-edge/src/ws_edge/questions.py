"""Lookups as they go over the wire, and what their answers say; the only module that reads query.v1 values."""

from typing import NamedTuple

from google.protobuf.message import DecodeError

from statecast.query.v1.query_pb2 import Absence, KeyQuery, State
from statecast.query.v1.query_pb2 import KeyError as KeyErrorProto
from statecast.query.v1.query_service_pb2 import BatchGetStatesRequest, BatchGetStatesResponse, ScanStatesResponse
from statecast.state.v1.state_pb2 import Position as PositionProto
from statecast.state.v1.state_pb2 import StateKey
from ws_edge.errors import MalformedFrameError, RequestError, UnavailableError, UnknownStoreError
from ws_edge.partitioning import group_hash
from ws_edge.states import Position, StoreKey, Version
from ws_edge.stores import Store

INVALID_ARGUMENT = 3
NOT_FOUND = 5

Answer = Version | RequestError | None
"""What a lookup came to: something newer, a failure, or nothing newer."""


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


def question(key: StoreKey, after: Position | None = None, known_hash: int | None = None) -> Question:
    """Encodes the question what `key` holds that is newer than `after`."""
    query = KeyQuery(key=StateKey(group=key.group, sort=key.sort, member=key.member))
    if after is not None:
        query.after.epoch, query.after.offset = after
    encoded = BatchGetStatesRequest(keys=[query]).SerializeToString()
    return Question(key, after, group_hash(key.group) if known_hash is None else known_hash, encoded)


def batch(store: Store, questions: list[Question], max_wait: float = 0.0) -> bytes:
    """The encoded BatchGetStatesRequest of the questions, all of this store.

    With `max_wait` the answer is held back, for so many seconds at most, until there is something newer.
    """
    request = BatchGetStatesRequest(store=store.name)
    if max_wait:
        request.max_wait.FromNanoseconds(int(max_wait * 1e9))
    return request.SerializeToString() + b"".join(each.encoded for each in questions)


def answers(store: Store, questions: list[Question], response: BatchGetStatesResponse) -> list[Answer]:
    """The answer to each question, in their order."""
    found: list[Answer] = [None] * len(questions)
    for result in response.results:
        key = questions[result.index].key
        if result.HasField("state"):
            found[result.index] = version_of_state(store, key, result.state)
        elif result.HasField("absence"):
            found[result.index] = _version_of_absence(key, result.absence)
        else:
            found[result.index] = failure(result.error)
    return found


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
    owner = getattr(row, store.rule.field) if store.rule.field else ""
    commit_ns = state.commit_time.ToNanoseconds() if state.HasField("commit_time") else None
    return Version(key, _position(state.position), row, owner, False, commit_ns, len(state.payload))


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
    commit_ns = absence.commit_time.ToNanoseconds() if absence.HasField("commit_time") else None
    return Version(key, _position(absence.position), deleted=absence.deleted, commit_ns=commit_ns)


def _position(position: PositionProto) -> Position:
    return Position(position.epoch, position.offset)
