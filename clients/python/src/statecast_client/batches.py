"""Splits keys by who is to be asked for them, and puts the answers back in their places."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from statecast.query.v1 import query_pb2
from statecast.query.v1 import query_service_pb2 as query
from statecast.state.v1 import state_pb2

_MOST_KEYS = 1000

KeyParts = str | tuple[str, str, str] | state_pb2.StateKey


def key_of(parts: KeyParts) -> state_pb2.StateKey:
    """Returns the key as the contract has it."""
    if isinstance(parts, state_pb2.StateKey):
        return parts
    if isinstance(parts, str):
        return state_pb2.StateKey(group=parts)
    group, sort, member = parts
    return state_pb2.StateKey(group=group, sort=sort, member=member)


@dataclass
class Batch:
    """Keys for one call, and their places among all keys."""

    keys: list[state_pb2.StateKey] = field(default_factory=list)
    places: list[int] = field(default_factory=list)

    @property
    def group(self) -> str:
        """A group that stands for all: the same instances hold them."""
        return self.keys[0].group

    def request(
        self, store: str, after: Mapping[int, state_pb2.Position], bounds: query_pb2.Bounds | None
    ) -> query.BatchGetStatesRequest:
        """Returns the call's request; `after` is by place."""
        queries = [
            query_pb2.KeyQuery(key=key, after=after.get(place))
            for key, place in zip(self.keys, self.places, strict=True)
        ]
        return query.BatchGetStatesRequest(store=store, keys=queries, bounds=bounds)

    def results(self, answer: query.BatchGetStatesResponse) -> list[query_pb2.KeyResult]:
        """Returns the results with their places among all keys."""
        for result in answer.results:
            result.index = self.places[result.index]
        return list(answer.results)


def split(
    keys: Sequence[state_pb2.StateKey], candidates: Callable[[str], tuple[str, ...]], most: int = _MOST_KEYS
) -> list[Batch]:
    """Returns batches of at most `most` keys; the keys of a batch are held by the same instances in the same order."""
    open_batches: dict[tuple[str, ...], Batch] = {}
    batches: list[Batch] = []
    for place, key in enumerate(keys):
        holders = candidates(key.group)
        batch = open_batches.get(holders)
        if batch is None or len(batch.keys) == most:
            batch = open_batches[holders] = Batch()
            batches.append(batch)
        batch.keys.append(key)
        batch.places.append(place)
    return batches
