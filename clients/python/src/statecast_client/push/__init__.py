"""A client of ws-edge: rows and every change, over one WebSocket that is connected again by itself."""

from statecast.push.v2.push_pb2 import Step as Step
from statecast_client.push.access import Credentials as Credentials
from statecast_client.push.access import Need as Need
from statecast_client.push.client import PushClient as PushClient
from statecast_client.push.places import Change as Change
from statecast_client.push.places import Path as Path
from statecast_client.push.places import Place as Place
from statecast_client.push.places import Row as Row
from statecast_client.push.protocol import PushError as PushError
from statecast_client.push.protocol import PushRefusedError as PushRefusedError
from statecast_client.push.watches import Watch as Watch
