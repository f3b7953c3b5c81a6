"""A client of ws-edge: what keys hold and every change, over one WebSocket that is connected again by itself."""

from statecast_client.push.access import Credentials, Need
from statecast_client.push.client import PushClient
from statecast_client.push.protocol import PushError, PushRefusedError
from statecast_client.push.subscription import RangeSubscription, RangeUpdate, Subscription, Update

__all__ = [
    "Credentials",
    "Need",
    "PushClient",
    "PushError",
    "PushRefusedError",
    "RangeSubscription",
    "RangeUpdate",
    "Subscription",
    "Update",
]
