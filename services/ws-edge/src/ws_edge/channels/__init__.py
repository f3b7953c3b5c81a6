"""State shared by all edges in Kafka topics: channels and revocations, and the stores in which they are read back.

Clients cannot name these stores: LiveStores leaves them out.
"""

from statecast.push.v2.channel_pb2 import ChannelRecord
from statecast.push.v2.revocation_pb2 import Revocation
from ws_edge.model.authorization import Consumer, OwnerRule
from ws_edge.model.stores import Store

EDGE_CONSUMER = Consumer(id="", name="ws-edge", staff=True)
"""The edge itself, as the reader of its own stores."""

CHANNELS = Store("push-channels", ChannelRecord, True, OwnerRule(None))
"""One group per channel."""

REVOCATIONS = Store("revoked-consumers", Revocation, False, OwnerRule(None))
"""One group per revoked consumer."""

EDGE_STORES = {store.name: store for store in (CHANNELS, REVOCATIONS)}
