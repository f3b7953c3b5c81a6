"""The protocol of the socket `/v1/stream`: what is subscribed, errors, and what follows when a connection ends.

StatecastError
└── PushError             the client has been closed, is used wrongly, or cannot connect at the moment
    └── PushRefusedError  the server refuses a subscription, or the connection; `code` is its stable word

A connection that breaks is no error: it is made again. `statecast.js` decides the same as `of_close` and `of_refusal`.
"""

import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from typing import NamedTuple

from websockets.typing import Subprotocol

from statecast.push.v1.push_pb2 import ClientFrame
from statecast.push.v1.range_pb2 import Range, UnwatchRange, WatchRange
from statecast.push.v1.subscription_pb2 import Subscribe, Unsubscribe
from statecast.state.v1.state_pb2 import Position, StateKey
from statecast_client.errors import StatecastError

SUBPROTOCOL = Subprotocol("statecast.push.v1+proto")

TOO_LARGE = 1009
EXPIRED = 4401
SLOW = 4408
FLOOD = 4429
FLOOD_PAUSE_S = 30.0
"""How long a client that sends too much stays away."""

FIRST_FATAL_CLOSE = 4000
UNAUTHORIZED = 401
TRANSIENT_REFUSALS = frozenset({408, 429})
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

FIRST_PAUSE_S = 0.25
MAX_PAUSE_S = 10.0

Name = tuple[str | bool, ...]
"""Identifies a subscription."""


class PushError(StatecastError):
    """The client cannot do what was asked; the text says why."""


class PushRefusedError(PushError):
    """The server refuses. `code` is the word of its error frame, or the number of the HTTP status or close code."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class Then(Enum):
    """What the client does next."""

    CONNECT = auto()
    RENEW = auto()
    """Connect once with a newer credential, where there is a way to get one; else end."""
    END = auto()


class Subject(NamedTuple):
    """A key or a range that is watched: its name, and the frames that begin and end its subscription."""

    name: Name
    opening: ClientFrame
    closing: ClientFrame

    @staticmethod
    def of_key(store: str, key: StateKey, interval_ms: int | None) -> "Subject":
        """Returns the subject that is a key."""
        subscribe = Subscribe(store=store, key=key, interval_ms=interval_ms)
        closing = ClientFrame(unsubscribe=Unsubscribe(store=store, key=key))
        return Subject(name_of_key(store, key), ClientFrame(subscribe=subscribe), closing)

    @staticmethod
    def of_range(watched: Range, interval_ms: int | None) -> "Subject":
        """Returns the subject that is a range."""
        watch = WatchRange(range=watched, interval_ms=interval_ms)
        closing = ClientFrame(unwatch_range=UnwatchRange(range=watched))
        return Subject(name_of_range(watched), ClientFrame(watch_range=watch), closing)

    def ask(self, frame_id: str, after: Position | None) -> ClientFrame:
        """Returns the frame that asks for what it holds and every change, or only for what is newer than `after`."""
        frame = ClientFrame(id=frame_id)
        frame.MergeFrom(self.opening)
        if after is not None:
            request = frame.watch_range if frame.HasField("watch_range") else frame.subscribe
            request.after.CopyFrom(after)
        return frame


@dataclass(frozen=True)
class Ending:
    """How a connection ended: why, what follows, and how many seconds to wait at least."""

    then: Then
    error: StatecastError
    pause_s: float = 0.0


class Backoff:
    """Pauses that double with each failure, up to the longest, and vary: clients must not all come back at once."""

    def __init__(self, chance: Callable[[], float] = random.random) -> None:
        """`chance` returns numbers from 0 up to 1."""
        self._chance = chance
        self._failures = 0

    def reset(self) -> None:
        """Notes that the connection works: the next pause is a first one."""
        self._failures = 0

    def next(self) -> float:
        """Returns the next pause in seconds: from half of its ceiling up to it."""
        ceiling: float = min(FIRST_PAUSE_S * 2.0**self._failures, MAX_PAUSE_S)
        self._failures += 1
        return ceiling * (0.5 + self._chance() / 2)


def of_close(code: int, reason: str) -> Ending:
    """Returns what follows a close code: another attempt with the positions, unless the code speaks against it."""
    text = TEXTS.get(code, "the connection was closed")
    error = PushRefusedError(str(code), f"{text} ({code}{f': {reason}' if reason else ''})")
    if code == EXPIRED:
        return Ending(Then.RENEW, error)
    if code == FLOOD:
        return Ending(Then.CONNECT, error, FLOOD_PAUSE_S)
    fatal = code == TOO_LARGE or (code >= FIRST_FATAL_CLOSE and code != SLOW)
    return Ending(Then.END if fatal else Then.CONNECT, error)


def of_refusal(status: int, retry_after: str | None, body: bytes | bytearray) -> Ending:
    """Returns what follows an HTTP status in answer to the handshake; `retry_after` is the header, in seconds."""
    text = TEXTS.get(status, "the connection was refused")
    reason = _reason(body)
    error = PushRefusedError(str(status), f"{text} ({status}{f': {reason}' if reason else ''})")
    if status == UNAUTHORIZED:
        return Ending(Then.RENEW, error)
    fatal = 400 <= status < 500 and status not in TRANSIENT_REFUSALS
    pause_s = float(retry_after) if retry_after and retry_after.isascii() and retry_after.isdigit() else 0.0
    return Ending(Then.END if fatal else Then.CONNECT, error, pause_s)


def lost(address: str, cause: Exception) -> Ending:
    """Returns what follows a connection that was not made, or broke without a close code."""
    return _try_again(f"{address} cannot be reached: {cause or type(cause).__name__}", cause)


def no_credentials(cause: Exception) -> Ending:
    """Returns what follows when the application's function for credentials has failed."""
    return _try_again(f"the credentials could not be had: {cause!r}", cause)


def name_of_key(store: str, key: StateKey) -> Name:
    """Returns the name of a key's subscription."""
    return store, key.group, key.sort, key.member


def name_of_range(watched: Range) -> Name:
    """Returns the name of a range's subscription. The limit is no part of it: the server's is in force."""
    return watched.store, watched.group, watched.sort_from, watched.sort_to, watched.reverse


def _try_again(text: str, cause: Exception) -> Ending:
    error = PushError(text)
    error.__cause__ = cause
    return Ending(Then.CONNECT, error)


def _reason(body: bytes | bytearray) -> str:
    """Returns the sentence of the edge, or of the gateway, on one line."""
    try:
        document = json.loads(body)
        text = document["error"]["message"] if "error" in document else document["message"]
    except (ValueError, KeyError, TypeError):
        text = body.decode(errors="replace")
    return " ".join(str(text).split())[:300]
