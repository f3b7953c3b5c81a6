"""The protocol of the socket `/v1/stream`: its errors, and the next step when a connection ends.

StatecastError
└── PushError             the client has been closed, is used wrongly, or cannot connect at the moment
    └── PushRefusedError  the server refuses a watch, or the connection; `code` is its stable word

A connection that breaks is no error: it is made again. `statecast.js` decides the same as `of_close` and `of_refusal`.
"""

import json
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from websockets.typing import Subprotocol

from statecast_client.errors import StatecastError

SUBPROTOCOL = Subprotocol("statecast.push.v2+json")

FIRST_PAUSE_S = 0.25
MAX_PAUSE_S = 10.0


class PushError(StatecastError):
    """The error of a client that cannot do as asked. The text says why."""


class PushRefusedError(PushError):
    """The server refuses. `code` is the word of its error frame, or the number of the HTTP status or close code."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


def refusal_of(problem: Mapping[str, Any]) -> PushRefusedError:
    """Returns the error of a Problem or an Ended, as its JSON has it."""
    code = str(problem.get("code", ""))
    return PushRefusedError(code, str(problem.get("message") or code))


class Then(Enum):
    """The next step of the client."""

    CONNECT = auto()
    RENEW = auto()
    """Connect once with a newer credential, where there is a way to get one; else end."""
    END = auto()


@dataclass(frozen=True)
class Ending:
    """The end of a connection: its cause, the next step, and how many seconds to wait at least."""

    then: Then
    error: StatecastError
    pause_s: float = 0.0


class Backoff:
    """Pauses that double with each failure, up to the longest, and vary: clients must not all come back at once."""

    def __init__(self, chance: Callable[[], float] = random.random) -> None:
        """`chance` returns numbers from 0 up to 1."""
        self._chance = chance
        self._ceiling = FIRST_PAUSE_S

    def reset(self) -> None:
        """Notes that the connection works: the next pause is a first one."""
        self._ceiling = FIRST_PAUSE_S

    def next(self) -> float:
        """Returns the next pause in seconds: from half of its ceiling up to it."""
        pause = self._ceiling * (0.5 + self._chance() / 2)
        self._ceiling = min(2 * self._ceiling, MAX_PAUSE_S)
        return pause


_MEANINGS = {
    401: (Then.RENEW, "the credential is not accepted"),
    408: (Then.CONNECT, "the connection was refused"),
    429: (Then.CONNECT, "the connection was refused"),
    1009: (Then.END, "a frame is larger than its receiver takes"),
    4401: (Then.RENEW, "the credential has expired"),
    4403: (Then.END, "the operators have ended this consumer's access"),
}
"""The meaning of HTTP statuses and close codes. Other statuses end the client if they blame it."""


def of_close(code: int, reason: str) -> Ending:
    """Returns the ending for a close code: another attempt with the tokens, unless the code speaks against it."""
    return _ending(code, (Then.CONNECT, "the connection was closed"), reason, 0.0)


def of_refusal(status: int, retry_after: str | None, body: bytes | bytearray) -> Ending:
    """Returns the ending for an HTTP status in answer to the handshake. `retry_after` is the header, in seconds.

    Its text has the sentence of the edge, or of the gateway, on one line.
    """
    try:
        document = json.loads(body)
        reason = document["error"]["message"] if "error" in document else document["message"]
    except (ValueError, KeyError, TypeError):
        reason = body.decode(errors="replace")
    others = Then.END if 400 <= status < 500 else Then.CONNECT, "the connection was refused"
    pause_s = float(retry_after) if retry_after and retry_after.isascii() and retry_after.isdigit() else 0.0
    return _ending(status, others, " ".join(str(reason).split())[:300], pause_s)


def _ending(number: int, others: tuple[Then, str], reason: str, pause_s: float) -> Ending:
    then, text = _MEANINGS.get(number, others)
    error = PushRefusedError(str(number), f"{text} ({number}{f': {reason}' if reason else ''})")
    return Ending(then, error, pause_s)


def try_again(text: str, cause: Exception) -> Ending:
    """Returns the ending for a failure that says nothing about the next attempt."""
    error = PushError(text)
    error.__cause__ = cause
    return Ending(Then.CONNECT, error)
