"""The stores that edges keep for themselves. Clients cannot name them: they are not in the table of stores."""

from statecast.push.v1.channel_pb2 import ChannelRecord
from statecast.push.v1.revocation_pb2 import Revocation
from ws_edge.authorization import Consumer, OwnerRule
from ws_edge.states import StoreKey
from ws_edge.stores import Store

EDGE = Consumer(id="", name="ws-edge", staff=True)
"""Who reads them."""

CHANNELS = Store("push-channels", ChannelRecord, True, OwnerRule(None))
"""A group per channel."""

REVOCATIONS = Store("revoked-consumers", Revocation, False, OwnerRule(None))
"""A group per revoked consumer."""

ALL = {store.name: store for store in (CHANNELS, REVOCATIONS)}


def revocation_key(principal: str) -> StoreKey:
    """The key under which the revocation of a consumer stands."""
    return StoreKey(REVOCATIONS.name, principal)
