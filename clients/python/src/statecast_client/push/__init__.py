"""A client of ws-edge: what keys hold and every change, over one WebSocket that is connected again by itself."""

from statecast_client.push.access import Credentials as Credentials
from statecast_client.push.access import Need as Need
from statecast_client.push.client import PushClient as PushClient
from statecast_client.push.protocol import PushError as PushError
from statecast_client.push.protocol import PushRefusedError as PushRefusedError
from statecast_client.push.query import QuerySubscription as QuerySubscription
from statecast_client.push.query import QueryUpdate as QueryUpdate
from statecast_client.push.query import name_of_row as name_of_row
from statecast_client.push.subscription import RangeSubscription as RangeSubscription
from statecast_client.push.subscription import RangeUpdate as RangeUpdate
from statecast_client.push.subscription import Subscription as Subscription
from statecast_client.push.subscription import Update as Update
