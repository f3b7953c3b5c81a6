"""A client of the query service that calls the owner of a key itself."""

from statecast_client.change import Change
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
