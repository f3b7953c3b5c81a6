"""Queries in steps: what is asked for, in plain values and as a message, and what each step is in the stores of now."""

from typing import NamedTuple

from google.protobuf.struct_pb2 import Value

from statecast.push.v1 import query_pb2
from statecast.push.v1.range_pb2 import Range
from statecast_service.settings import suggest
from ws_edge.errors import MalformedFrameError
from ws_edge.model.authorization import Consumer, check_key, check_store
from ws_edge.model.states import AnyKey, RangeKey, StoreKey
from ws_edge.model.stores import Store, Stores, check_key_part, find

MAX_NAME = 64
MAX_STEPS = 3
ANY_GROUP = "group"


class StepSpec(NamedTuple):
    """What is asked for of each row of the step before; bounds are those of a range."""

    store: str
    group_field: str
    sort_from: str
    sort_to: str
    limit: int
    reverse: bool


class QuerySpec(NamedTuple):
    """What is asked for; two queries that are equal ask for the same."""

    name: str
    first: RangeKey
    steps: tuple[StepSpec, ...]


Subject = AnyKey | QuerySpec
"""What a channel has subscriptions of."""


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


def range_key(value: Range) -> RangeKey:
    """The range that a message asks for."""
    return RangeKey(value.store, value.group, value.sort_from, value.sort_to, value.limit, value.reverse)


def query_spec(message: query_pb2.Query) -> QuerySpec:
    """What a message asks for; whether there can be such a query is not checked."""
    steps = (
        StepSpec(each.store, each.group_field, each.sort_from, each.sort_to, each.limit, each.reverse)
        for each in message.steps
    )
    return QuerySpec(message.name, range_key(message.first), tuple(steps))


def query_message(spec: QuerySpec) -> query_pb2.Query:
    """The message that asks for it."""
    steps = [query_pb2.QueryStep(**step._asdict()) for step in spec.steps]
    return query_pb2.Query(name=spec.name, first=Range(**spec.first._asdict()), steps=steps)


def check_name(name: str) -> None:
    """Raises MalformedFrameError when no query can have the name."""
    if not 0 < len(name) <= MAX_NAME:
        raise MalformedFrameError(f"the name of a query has 1 to {MAX_NAME} characters")


def steps_of(spec: QuerySpec, stores: Stores) -> tuple[Step, ...]:
    """The steps with their stores.

    Raises MalformedFrameError when there can be no such query, and UnknownStoreError.
    """
    check_name(spec.name)
    if not 1 <= len(spec.steps) <= MAX_STEPS:
        raise MalformedFrameError(f"the query {spec.name} has {len(spec.steps)} steps: give 1 to {MAX_STEPS}")
    steps, before = list[Step](), find(stores, spec.first.store)
    before.check(spec.first)
    for each in spec.steps:
        step = step_of(before, each, stores)
        steps.append(step)
        before = step.store
    return tuple(steps)


def check_rights(consumer: Consumer, first: AnyKey, steps: tuple[Step, ...], stores: Stores) -> None:
    """Raises ForbiddenError when it shows without a row that the consumer may not see what a step or the first has."""
    for step in steps:
        check_store(consumer, step.store.rule, step.store.name)
    check_key(consumer, find(stores, first.store).rule, first)


def step_of(before: Store, spec: StepSpec, stores: Stores) -> Step:
    """Returns a step after rows of `before`. Raises MalformedFrameError when there can be none, UnknownStoreError."""
    store, field, bounds = find(stores, spec.store), spec.group_field, spec[2:]
    if not field or (before.message is not Value and field not in before.text_fields):
        hint = suggest(field, before.text_fields)
        raise MalformedFrameError(f"group_field: a row of {before.name} has no text field {field[:80]!r}; {hint}")
    check_key_part("group_field", field)  # of JSON it may be any text
    if any(bounds) and not store.members:
        raise MalformedFrameError(
            f"{store.name} has one value per group: leave sort_from, sort_to, limit and reverse out"
        )
    step = Step(store, field, *bounds)
    store.check(step.key_for(ANY_GROUP))
    return step
