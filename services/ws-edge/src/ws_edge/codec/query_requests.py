"""Reads the queries that clients ask for, and checks what can be checked before anything is read."""

from google.protobuf.struct_pb2 import Value

from statecast.push.v1.query_pb2 import QueryStep, WatchQuery
from statecast_service.settings import suggest
from ws_edge.codec.frames import QueryRequest, Step, check_interval, check_position
from ws_edge.errors import MalformedFrameError
from ws_edge.states import RangeKey
from ws_edge.stores import Store, Stores, find

MAX_NAME = 64
MAX_STEPS = 3
ANY_GROUP = "group"


def query_request(message: WatchQuery, first: RangeKey, stores: Stores, reference: str) -> QueryRequest:
    """Returns the request of a message whose first range was read already. Raises RequestError."""
    name, steps = message.query.name, list[Step]()
    check_name(name)
    if not 1 <= len(message.query.steps) <= MAX_STEPS:
        raise MalformedFrameError(f"the query {name} has {len(message.query.steps)} steps: give 1 to {MAX_STEPS}")
    store = find(stores, first.store)
    for each in message.query.steps:
        step = _step(store, each, stores)
        steps.append(step)
        store = step.store
    after = {
        (tuple(each.path), each.group): check_position(each.through.epoch, each.through.offset)
        for each in message.after
    }
    interval_ms = message.interval_ms if message.HasField("interval_ms") else None
    check_interval(interval_ms)
    return QueryRequest(name, first, tuple(steps), after, interval_ms, reference)


def check_name(name: str) -> None:
    """Raises MalformedFrameError when no query can have the name."""
    if not 0 < len(name) <= MAX_NAME:
        raise MalformedFrameError(f"the name of a query has 1 to {MAX_NAME} characters")


def _step(before: Store, message: QueryStep, stores: Stores) -> Step:
    store, field = find(stores, message.store), message.group_field
    if not field or (before.message is not Value and field not in before.text_fields):
        hint = suggest(field, before.text_fields)
        raise MalformedFrameError(f"group_field: a row of {before.name} has no text field {field[:80]!r}; {hint}")
    bounds = message.sort_from, message.sort_to, message.limit, message.reverse
    if any(bounds) and not store.members:
        raise MalformedFrameError(
            f"{store.name} has one value per group: leave sort_from, sort_to, limit and reverse out"
        )
    step = Step(store, field, *bounds)
    store.check(step.key_for(ANY_GROUP))
    return step
