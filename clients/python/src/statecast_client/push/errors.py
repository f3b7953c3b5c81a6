"""What can go wrong on a live connection. That it breaks is not among it: it is made again.

StatecastError
└── PushError             the client has been closed, is used wrongly, or cannot connect at the moment
    └── PushRefusedError  the server refuses a subscription, or the connection; `code` is its stable word
"""

from statecast_client.errors import StatecastError


class PushError(StatecastError):
    """The client cannot do what was asked; the text says why."""


class PushRefusedError(PushError):
    """The server refuses. `code` is the word of its error frame, or the number of the HTTP status or close code."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
