"""Whether the edge and the query service mean the same by each store."""

from collections.abc import Collection, Iterable

from statecast.query.v1 import query_pb2
from ws_edge.stores import Store, Stores

_PARTITIONERS = {number: name.removeprefix("PARTITIONER_").lower() for name, number in query_pb2.Partitioner.items()}
_MURMUR2 = (query_pb2.PARTITIONER_UNSPECIFIED, query_pb2.PARTITIONER_MURMUR2)


def disagreement(stores: Stores, written: Collection[str], listed: Iterable[query_pb2.Store]) -> str | None:
    """Returns a difference between the edge's stores and those of the query service; None when they agree.

    `written` names the stores that the edge writes, with murmur2. Stores that the other side does not have do not
    count. A store that has an owner there may be for staff alone here.
    """
    for theirs in listed:
        if theirs.store in written and theirs.partitioner not in _MURMUR2:
            other = _PARTITIONERS.get(theirs.partitioner, "a newer one")
            return (
                f"the store {theirs.store} has the partitioner {other} at the query service; edges write with murmur2"
            )
        difference = _difference(stores[theirs.store], theirs) if theirs.store in stores else None
        if difference is not None:
            return difference
    return None


def _difference(ours: Store, theirs: query_pb2.Store) -> str | None:
    message, rule = ours.kind, ours.rule
    if theirs.message != message:
        return f"the store {ours.name} holds {theirs.message} at the query service and {message} here: {_REMEDY}"
    if theirs.owner and (rule.everyone or rule.field not in (None, theirs.owner)):
        owner = "everyone" if rule.everyone else rule.field
        return f"the owner in the store {ours.name} is {theirs.owner} at the query service and {owner} here: {_REMEDY}"
    return None


_REMEDY = "correct the stores file of one of them"
