"""What follows when a connection ends, or is refused before it begins. `statecast.js` decides the same."""

import json
from dataclasses import dataclass
from enum import Enum, auto

from statecast_client.errors import StatecastError
from statecast_client.push.errors import PushError, PushRefusedError

TOO_LARGE = 1009
EXPIRED = 4401
SLOW = 4408
FLOOD = 4429
FLOOD_PAUSE_S = 30.0
"""How long a client that was told to send less stays away."""

FIRST_FATAL_CLOSE = 4000
UNAUTHORIZED = 401
PASSING_REFUSALS = frozenset({408, 429})
"""The HTTP statuses below 500 that another attempt may not meet."""

TEXTS = {
    TOO_LARGE: "a frame is larger than its receiver takes",
    UNAUTHORIZED: "the credential is not accepted",
    EXPIRED: "the credential has expired",
    4403: "the operators have ended this consumer's access",
    4404: "the channel has expired or was deleted",
    SLOW: "more waited for this client than may",
    FLOOD: "this client sends more frames than it may",
}


class Then(Enum):
    """What the client does next."""

    CONNECT = auto()
    RENEW = auto()
    """Connect once with a newer credential, where there is a way to get one; else end."""
    END = auto()


@dataclass(frozen=True)
class Ending:
    """How a connection ended: why, what follows, and how many seconds to wait at the least."""

    then: Then
    error: StatecastError
    pause_s: float = 0.0


def of_close(code: int, reason: str) -> Ending:
    """After a close code. Those that say nothing against another attempt with the positions are answered by one."""
    text = TEXTS.get(code, "the connection was closed")
    error = PushRefusedError(str(code), f"{text} ({code}{f': {reason}' if reason else ''})")
    if code == EXPIRED:
        return Ending(Then.RENEW, error)
    if code == FLOOD:
        return Ending(Then.CONNECT, error, FLOOD_PAUSE_S)
    fatal = code == TOO_LARGE or (code >= FIRST_FATAL_CLOSE and code != SLOW)
    return Ending(Then.END if fatal else Then.CONNECT, error)


def of_refusal(status: int, retry_after: str | None, body: bytes | bytearray) -> Ending:
    """After a call or a handshake that was answered with an HTTP status; `retry_after` is the header, in seconds."""
    text = TEXTS.get(status, "the connection was refused")
    reason = _reason(body)
    error = PushRefusedError(str(status), f"{text} ({status}{f': {reason}' if reason else ''})")
    if status == UNAUTHORIZED:
        return Ending(Then.RENEW, error)
    fatal = 400 <= status < 500 and status not in PASSING_REFUSALS
    pause_s = float(retry_after) if retry_after and retry_after.isascii() and retry_after.isdigit() else 0.0
    return Ending(Then.END if fatal else Then.CONNECT, error, pause_s)


def lost(address: str, cause: Exception) -> Ending:
    """After a connection that was not made, or broke without a word."""
    error = PushError(f"{address} cannot be reached: {cause or type(cause).__name__}")
    error.__cause__ = cause
    return Ending(Then.CONNECT, error)


def _reason(body: bytes | bytearray) -> str:
    """The sentence of the edge, or of the gateway, on one line."""
    try:
        document = json.loads(body)
        text = document["error"]["message"] if "error" in document else document["message"]
    except (ValueError, KeyError, TypeError):
        text = body.decode(errors="replace")
    return " ".join(str(text).split())[:300]
