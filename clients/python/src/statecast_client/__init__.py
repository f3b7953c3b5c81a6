"""A client of the query service that calls the owner of a key directly; `push` watches through the gateway."""

from statecast_client.client import StatecastClient
from statecast_client.errors import (
    AbsentError,
    BehindError,
    InvalidError,
    OverloadedError,
    StatecastError,
    UnavailableError,
    UnknownStoreError,
)
from statecast_client.keys import Change

__all__ = [
    "AbsentError",
    "BehindError",
    "Change",
    "InvalidError",
    "OverloadedError",
    "StatecastClient",
    "StatecastError",
    "UnavailableError",
    "UnknownStoreError",
]
