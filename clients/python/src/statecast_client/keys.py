"""Keys, the batches in which they are asked for, and the changes that a reader who watches them gets."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass

from statecast.query.v1 import query_pb2
from statecast.query.v1 import query_service_pb2 as query
from statecast.state.v1 import state_pb2
from statecast_client.shard_map import group_by_owner

_MAX_KEYS = 1000

KeyParts = str | tuple[str, str, str] | state_pb2.StateKey


@dataclass(frozen=True)
class Change:
    """What a key holds as of a position: `state`, or, when it has no value, `absence`."""

    key: state_pb2.StateKey
    position: state_pb2.Position
    state: query_pb2.State | None = None
    absence: query_pb2.Absence | None = None

    @staticmethod
    def of(key: state_pb2.StateKey, result: query_pb2.KeyResult) -> "Change":
        """Returns the change that a result without an error brings."""
        if result.HasField("state"):
            return Change(key, result.state.position, state=result.state)
        return Change(key, result.absence.position, absence=result.absence)


@dataclass(frozen=True)
class Batch:
    """Keys for one call, and their indices among all keys."""

    keys: list[state_pb2.StateKey]
    indices: list[int]

    @property
    def group(self) -> str:
        """A group that stands for all: the same instances hold them."""
        return self.keys[0].group

    def request(
        self, store: str, after: Mapping[int, state_pb2.Position], bounds: query_pb2.Bounds | None
    ) -> query.BatchGetStatesRequest:
        """Returns the call's request; `after` is by index among all keys."""
        queries = [
            query_pb2.KeyQuery(key=key, after=after.get(index))
            for key, index in zip(self.keys, self.indices, strict=True)
        ]
        return query.BatchGetStatesRequest(store=store, keys=queries, bounds=bounds)

    def results(self, response: query.BatchGetStatesResponse) -> list[query_pb2.KeyResult]:
        """Returns the results with their indices among all keys."""
        for result in response.results:
            result.index = self.indices[result.index]
        return list(response.results)


def key_of(parts: KeyParts) -> state_pb2.StateKey:
    """Returns the key as a message of the contract."""
    if isinstance(parts, state_pb2.StateKey):
        return parts
    group, sort, member = (parts, "", "") if isinstance(parts, str) else parts
    return state_pb2.StateKey(group=group, sort=sort, member=member)


def split(keys: Sequence[state_pb2.StateKey], owner: Callable[[str], Hashable], limit: int = _MAX_KEYS) -> list[Batch]:
    """Returns batches of at most `limit` keys; the groups of a batch have the same owner."""
    batches = group_by_owner((owner(key.group) for key in keys), limit)
    return [Batch([keys[index] for index in indices], indices) for indices in batches]
