"""A client of the query service that calls the owner of a key directly; `push` watches through the gateway."""

from statecast_client.client import StatecastClient as StatecastClient
from statecast_client.errors import AbsentError as AbsentError
from statecast_client.errors import BehindError as BehindError
from statecast_client.errors import InvalidError as InvalidError
from statecast_client.errors import OverloadedError as OverloadedError
from statecast_client.errors import StatecastError as StatecastError
from statecast_client.errors import UnavailableError as UnavailableError
from statecast_client.errors import UnknownStoreError as UnknownStoreError
from statecast_client.keys import Change as Change
