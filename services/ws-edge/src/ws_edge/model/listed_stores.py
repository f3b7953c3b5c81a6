"""Stores of the query service, as ListShards lists them and as the edge shows them to consumers."""

from collections.abc import Iterable, Mapping

from google.protobuf.message import Message
from google.protobuf.struct_pb2 import Value

from statecast.descriptors import MessageTypes
from statecast.query.v1 import query_pb2
from statecast.row_fields import check_owner, check_private
from statecast_service.settings import suggest
from ws_edge.model.authorization import OwnerRule
from ws_edge.model.private_fields import PrivateField
from ws_edge.model.stores import JSON, Store

BYTES = "bytes"
_MURMUR2 = (query_pb2.PARTITIONER_UNSPECIFIED, query_pb2.PARTITIONER_MURMUR2)


def fault_of(listed: Iterable[query_pb2.Store], own: Mapping[str, Store]) -> str | None:
    """Returns why no store may be taken from a listing; None when they may. `own` are the stores that edges write."""
    for store in listed:
        if store.readers == query_pb2.READERS_UNSPECIFIED:
            return (
                f"the query service does not say who may read the store {store.store}: it is older than this edge, "
                "which shows nothing of it; update the query service first"
            )
        if store.store not in own:
            continue
        if store.partitioner not in _MURMUR2:
            return f"the store {store.store} needs partitioner murmur2 at the query service: edges write it so"
        if store.message != (written := own[store.store].kind):
            return f"the store {store.store} holds {store.message} at the query service, and edges write {written}"
    return None


def store_of(listed: query_pb2.Store, types: MessageTypes) -> Store:
    """Returns a store with rows of `types`. Raises ValueError, which says why, when it can be shown to nobody."""
    store = Store(
        listed.store,
        _message_of(listed.message, types),
        listed.members,
        _rule_of(listed),
        private=tuple(PrivateField(tuple(each.path), each.owner) for each in listed.private_fields),
        description=listed.description or None,
        interval_ms=listed.interval_ms or None,
    )
    if store.message is not Value:
        if store.rule.field is not None:
            check_owner(store.message, store.rule.field)
        for private in store.private:
            check_private(store.message, private.path, private.owner)
    return store


def _message_of(name: str, types: MessageTypes) -> type[Message]:
    if name == JSON:
        return Value
    try:
        return types.message_class(name)
    except KeyError as error:
        hint = suggest(name, types.rows | {JSON})
        raise ValueError(f"no message {name!r} in the contract, nor mounted at this edge; {hint}") from error


def _rule_of(listed: query_pb2.Store) -> OwnerRule:
    match listed.readers:
        case query_pb2.READERS_STAFF:
            return OwnerRule(None)
        case query_pb2.READERS_EVERYONE:
            return OwnerRule(None, everyone=True)
        case query_pb2.READERS_OWNER:
            return OwnerRule(listed.owner, listed.group_is_owner)
    raise ValueError(f"its readers are of a kind that this edge does not know ({listed.readers}): update the edge")
