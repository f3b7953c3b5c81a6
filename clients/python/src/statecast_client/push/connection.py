"""Keeps one socket to an edge: connects again when it breaks or is silent, and renews its access before that ends."""

import asyncio
import itertools
import json
import logging
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from time import monotonic

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus, InvalidURI, WebSocketException
from websockets.uri import parse_uri

from statecast_client.errors import StatecastError
from statecast_client.proxies import through
from statecast_client.push import protocol
from statecast_client.push.access import Access, Need, renewal_pause
from statecast_client.push.places import Frame
from statecast_client.push.protocol import SUBPROTOCOL, Backoff, Ending, PushError, Then, refusal_of
from statecast_client.push.requests import MAX_REQUEST_BYTES, text_of

SILENCE_S = 45.0
"""A line without a frame for so long is dead: an idle edge sends pings."""
CHECK_S = 5.0
"""How long a line may be silent after a ping of the client."""
CLOSE_S = 1.0
"""How long the edge may take to answer when the client closes the line."""

log = logging.getLogger(__name__)


class _Opening(connect):
    """Takes a redirect for a refusal: another address must not see the credentials."""

    def process_redirect(self, exc: Exception) -> Exception:
        return exc


class Connection:
    """One socket at a time. `on_open` is run after each `hello`, while it is read; `on_frame` gets each other frame."""

    def __init__(
        self,
        addresses: Sequence[str],
        access: Access,
        on_open: Callable[[], Coroutine[None, None, None]],
        on_frame: Callable[[Frame], None],
    ) -> None:
        """The addresses are tried in turn. Raises PushError when one is none."""
        for address in addresses or [""]:
            try:
                parse_uri(address)
            except InvalidURI as error:
                raise PushError(f"`{address}` is not the address of a socket: give ws://… or wss://…") from error
        self._addresses = itertools.cycle(addresses)
        self._access = access
        self._on_open, self._on_frame = on_open, on_frame
        self._backoff = Backoff()
        self._need: Need = "connect"
        self._renewed = False
        self._wait_until = 0.0
        self._socket: ClientConnection | None = None
        self._silence: asyncio.Timeout | None = None
        self._hurry = asyncio.Event()
        self._opening: asyncio.Task[None] | None = None
        self._renewal: asyncio.Task[None] | None = None
        self.max_request_bytes = MAX_REQUEST_BYTES
        """The largest frame that the edge takes."""
        self.opened = asyncio.Event()
        """Set while there is an open socket."""
        self.lost_at = monotonic()
        """When the last socket ended, in monotonic seconds."""
        self.reason: StatecastError | None = None
        """Why there is none, or why its access could not be renewed; None while all is well."""

    async def run(self) -> StatecastError:
        """Stays connected; returns why it does not try any more."""
        while True:
            ending = await self._connect(next(self._addresses))
            self.reason = ending.error
            is_refused_again = self._renewed or not self._access.renewable
            if ending.then is Then.END or (ending.then is Then.RENEW and is_refused_again):
                return ending.error
            if ending.then is Then.RENEW:
                self._need, self._renewed = "expired", True
            asked_for = max(ending.pause_s, self._wait_until - monotonic(), 0.0)
            self._hurry.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(asked_for + self._backoff.next()):
                    await self._hurry.wait()

    async def send(self, text: str) -> None:
        """Sends a frame, if there is an open socket."""
        if self._socket is not None:
            with suppress(ConnectionClosed):  # `on_open` of the next one asks for all that is watched
                await self._socket.send(text)

    async def check(self) -> None:
        """Connects again at once if there is no socket, or if the edge gives no sign of life for 5 seconds."""
        self._hurry.set()
        if self._silence is not None and not self._silence.expired():
            deadline = asyncio.get_running_loop().time() + CHECK_S
            self._silence.reschedule(min(deadline, self._silence.when() or deadline))
            await self.send('{"ping":{}}')

    async def _connect(self, address: str) -> Ending:
        try:
            headers = await self._access.headers(self._need)
        except StatecastError as error:
            return Ending(Then.END, error)
        except Exception as error:  # noqa: BLE001  the function is the application's
            return _no_credentials(error)
        proxy = self._access.proxy_of(address)
        try:
            async with _Opening(
                address,
                additional_headers=headers,
                subprotocols=[SUBPROTOCOL],
                ssl=self._access.tls or parse_uri(address).secure or None,
                max_size=None,  # an edge names and keeps its own limit
                close_timeout=CLOSE_S,
                ping_interval=None,
                proxy=proxy,
            ) as self._socket:
                try:
                    return await self._serve(self._socket, address)
                finally:
                    self._silence = None
        except InvalidStatus as refusal:
            answer = refusal.response
            return protocol.of_refusal(answer.status_code, answer.headers.get("Retry-After"), answer.body)
        except (OSError, WebSocketException) as error:
            return _lost(error) or protocol.try_again(
                f"{address} cannot be reached{through(proxy)}: {str(error) or type(error).__name__}", error
            )
        finally:
            self._end_socket()

    def _end_socket(self) -> None:
        if self.opened.is_set():
            self.lost_at = monotonic()
        self._socket = None
        self.opened.clear()
        for task in filter(None, (self._opening, self._renewal)):
            task.cancel()

    async def _serve(self, socket: ClientConnection, address: str) -> Ending:
        if socket.subprotocol != SUBPROTOCOL:
            text = f"{address} does not speak {SUBPROTOCOL}: give the socket /v1/stream of ws-edge"
            return Ending(Then.END, PushError(text))
        self._need, self.reason = "connect", None
        self.opened.set()
        while True:
            try:
                async with asyncio.timeout(SILENCE_S) as self._silence:
                    frame = json.loads(await socket.recv(decode=False))
                self._receive(frame, address)
            except TimeoutError as error:
                socket.transport.abort()
                return protocol.try_again(f"{address} is silent: the line is taken for dead", error)
            except (ValueError, AttributeError, LookupError, TypeError) as error:
                return Ending(Then.END, PushError(f"{address} sends a frame that is not of {SUBPROTOCOL}: {error!r}"))

    def _receive(self, frame: Frame, address: str) -> None:
        if "hello" in frame:
            self.max_request_bytes = frame["hello"].get("max_request_bytes", MAX_REQUEST_BYTES)
            self._expires_in(frame["hello"].get("expires_in_s", 0), address)
            self._opening = asyncio.create_task(self._on_open())
            return
        self._backoff.reset()
        self._renewed = False
        if "access" in frame:
            self.reason = None
            self._expires_in(frame["access"].get("expires_in_s", 0), address)
        if "reconnect" in frame:
            self._wait_until = monotonic() + frame["reconnect"].get("delay_ms", 0) / 1000
        if "warning" in frame:
            log.warning("the edge warns: %s", frame["warning"].get("message"))
        if "error" in frame:
            self.reason = refusal_of(frame["error"])
            log.warning("the edge refuses a frame: %s", self.reason)
            if frame["error"].get("code") == "ticket_refused":  # another one takes its place
                self._renewal = asyncio.create_task(self._renew(self._expires_at, address))
        self._on_frame(frame)

    def _expires_in(self, seconds: float, address: str) -> None:
        if self._renewal is not None:
            self._renewal.cancel()
        if seconds and self._access.renewable:
            self._expires_at = monotonic() + seconds
            self._renewal = asyncio.create_task(self._renew(self._expires_at, address))

    async def _renew(self, expires_at: float, address: str) -> None:
        """Sends a ticket in time. Tries again after a failure until access ends, and then the server says so."""
        while (left := expires_at - monotonic()) > 0:
            await asyncio.sleep(renewal_pause(left))
            try:
                ticket = await self._access.ticket(address)
            except Exception as error:  # noqa: BLE001  the function is the application's
                self.reason = _no_credentials(error).error
            else:
                await self.send(text_of({"renew": {"ticket": ticket}}))
                return


def _lost(error: Exception) -> Ending | None:
    """Returns the ending for a close code, if the error has one: ours, where the client has closed first."""
    if not isinstance(error, ConnectionClosed):
        return None
    close = error.sent if error.rcvd_then_sent is False else error.rcvd or error.sent
    return None if close is None else protocol.of_close(close.code, close.reason)


def _no_credentials(cause: Exception) -> Ending:
    return protocol.try_again(f"the credentials could not be had: {cause!r}", cause)
