"""The steps of a watch: what each of them watches for a row of the one before, in the stores of now."""

from collections.abc import Iterable
from typing import NamedTuple

from google.protobuf.struct_pb2 import Value

from statecast.push.v2 import push_pb2
from statecast_service.settings import suggest
from ws_edge.errors import MalformedFrameError
from ws_edge.model.authorization import Consumer, check_key, check_store
from ws_edge.model.states import AnyKey, RangeKey, StoreKey
from ws_edge.model.stores import Store, Stores, check_key_part, find

MAX_STEPS = 3
ANY_GROUP = "group"


class Step(NamedTuple):
    """What is watched for each row of the step before: a range, or a key in stores with one value per group."""

    store: Store
    field: str
    """The field of the row before that holds the group."""
    sort_from: str
    sort_to: str
    limit: int
    reverse: bool
    fields: tuple[str, ...] = ()
    """The fields of its rows that are sent; none for all."""

    def key_for(self, group: str) -> AnyKey:
        """What is watched for a row that names the group."""
        if not self.store.members:
            return StoreKey(self.store.name, group)
        return RangeKey(self.store.name, group, self.sort_from, self.sort_to, self.limit, self.reverse)


def check_rights(consumer: Consumer, first: AnyKey, steps: Iterable[Step], stores: Stores) -> None:
    """Raises ForbiddenError when it shows without a row that the consumer may not see what a step or the first has."""
    for step in steps:
        check_store(consumer, step.store.rule, step.store.name)
    check_key(consumer, find(stores, first.store).rule, first)


def step_of(before: Store, asked: push_pb2.Step, stores: Stores) -> Step:
    """Returns a step after rows of `before`, with all fields.

    Raises MalformedFrameError when there can be none, and UnknownStoreError.
    """
    store, field = find(stores, asked.store), asked.group_field
    if not field or (before.message is not Value and field not in before.text_fields):
        hint = suggest(field, before.text_fields)
        raise MalformedFrameError(f"group_field: a row of {before.name} has no text field {field[:80]!r}; {hint}")
    check_key_part("group_field", field)  # of JSON it may be any text
    step = Step(store, field, asked.sort_from, asked.sort_to, asked.limit, asked.reverse)
    if not store.members and any(step[2:6]):
        raise MalformedFrameError(
            f"{store.name} has one value per group: leave sort_from, sort_to, limit and reverse out"
        )
    store.check(step.key_for(ANY_GROUP))
    return step
