"""Keeps one socket to an edge: connects again when it breaks, and renews its access before that ends."""

import asyncio
import itertools
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from time import monotonic, time

from google.protobuf.message import DecodeError
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus, InvalidURI, WebSocketException
from websockets.uri import parse_uri

from statecast.push.v1.push_pb2 import AuthRefresh, ClientFrame, ServerFrame
from statecast_client.errors import StatecastError
from statecast_client.proxies import through
from statecast_client.push import protocol
from statecast_client.push.access import Access, Need, renewal_pause
from statecast_client.push.protocol import SUBPROTOCOL, Backoff, Ending, PushError, PushRefusedError, Then

MAX_FRAME_BYTES = 2**24
"""Above what an edge lets wait for a client."""

RENEWAL = "renewal"
"""The id of the frame that renews access; the ids of other frames are numbers."""


class Connection:
    """One socket at a time. `on_open` is run for each new one, while it is read; `on_frame` gets each frame."""

    def __init__(
        self,
        addresses: Sequence[str],
        access: Access,
        on_open: Callable[[], Coroutine[None, None, None]],
        on_frame: Callable[[ServerFrame], None],
    ) -> None:
        """The addresses are tried in turn. Raises PushError when one is none."""
        for address in addresses or [""]:
            try:
                parse_uri(address)
            except InvalidURI as error:
                raise PushError(f"`{address}` is not the address of a socket: give ws://… or wss://…") from error
        self._addresses = itertools.cycle(addresses)
        self._access = access
        self._on_open = on_open
        self._on_frame = on_frame
        self._backoff = Backoff()
        self._need: Need = "connect"
        self._renewed = False
        self._wait_until = 0.0
        self._expires_at = 0.0
        self._socket: ClientConnection | None = None
        self._opening: asyncio.Task[None] | None = None
        self._renewal: asyncio.Task[None] | None = None
        self.opened = asyncio.Event()
        """Set while there is an open socket."""
        self.reason: StatecastError | None = None
        """Why there is none, or why its access could not be renewed; None while all is well."""

    async def run(self) -> StatecastError:
        """Stays connected; returns why it does not try any more."""
        while True:
            ending = await self._connect(next(self._addresses))
            self.reason = ending.error
            if ending.then is Then.END:
                return ending.error
            if ending.then is Then.RENEW:
                if self._renewed or not self._access.renewable:
                    return ending.error
                self._need, self._renewed = "expired", True
            asked_for = max(ending.pause_s, self._wait_until - monotonic(), 0.0)
            await asyncio.sleep(asked_for + self._backoff.next())

    async def send(self, frame: ClientFrame) -> None:
        """Sends a frame, if there is an open socket."""
        if self._socket is not None:
            with suppress(ConnectionClosed):  # `on_open` of the next one asks for all that is watched
                await self._socket.send(frame.SerializeToString())

    async def _connect(self, address: str) -> Ending:
        try:
            headers = await self._access.headers(self._need)
        except StatecastError as error:
            return Ending(Then.END, error)
        except Exception as error:  # noqa: BLE001  the function is the application's
            return _no_credentials(error)
        proxy = self._access.proxy_of(address)
        try:
            async with connect(
                address,
                additional_headers=headers,
                subprotocols=[SUBPROTOCOL],
                ssl=self._access.tls,
                max_size=MAX_FRAME_BYTES,
                proxy=proxy,
            ) as socket:
                return await self._serve(socket, address)
        except InvalidStatus as refusal:
            answer = refusal.response
            return protocol.of_refusal(answer.status_code, answer.headers.get("Retry-After"), answer.body)
        except (OSError, WebSocketException) as error:
            if isinstance(error, ConnectionClosed):
                close = error.sent if error.rcvd_then_sent is False else error.rcvd or error.sent
                if close is not None:
                    return protocol.of_close(close.code, close.reason)
            text = f"{address} cannot be reached{through(proxy)}: {str(error) or type(error).__name__}"
            return protocol.try_again(text, error)
        finally:
            self._socket = None
            self.opened.clear()
            self._stop_renewal()
            if self._opening is not None:
                self._opening.cancel()

    async def _serve(self, socket: ClientConnection, address: str) -> Ending:
        if socket.subprotocol != SUBPROTOCOL:
            text = f"{address} does not speak {SUBPROTOCOL}: give the socket /v1/stream of ws-edge"
            return Ending(Then.END, PushError(text))
        self._socket, self._need, self.reason = socket, "connect", None
        self._opening = asyncio.create_task(self._on_open())
        self.opened.set()
        while True:
            try:
                frame = ServerFrame.FromString(await socket.recv(decode=False))
            except DecodeError as error:
                return Ending(Then.END, PushError(f"{address} sends what is no frame of {SUBPROTOCOL}: {error}"))
            self._backoff.reset()
            self._receive(frame, address)

    def _receive(self, frame: ServerFrame, address: str) -> None:
        event = frame.WhichOneof("event")
        if event == "authenticated":
            self._stop_renewal()
            self.reason = None
            if frame.authenticated.HasField("expires_at") and self._access.renewable:
                self._expires_at = frame.authenticated.expires_at.ToNanoseconds() / 1e9
                self._renewal = asyncio.create_task(self._renew(address))
        if event == "error" and frame.id == RENEWAL:
            self.reason = PushRefusedError(frame.error.code, frame.error.message)
            self._renewal = asyncio.create_task(self._renew(address))
        if event != "authenticated" or frame.id:
            self._renewed = False
        if event == "reconnect":
            self._wait_until = monotonic() + frame.reconnect.delay_ms / 1000
        self._on_frame(frame)

    async def _renew(self, address: str) -> None:
        """Sends a ticket in time. Tries again after a failure until access ends, and then the server says so."""
        while (left := self._expires_at - time()) > 0:
            await asyncio.sleep(renewal_pause(left))
            try:
                ticket = await self._access.ticket(address)
            except Exception as error:  # noqa: BLE001  the function is the application's
                self.reason = _no_credentials(error).error
            else:
                await self.send(ClientFrame(id=RENEWAL, auth_refresh=AuthRefresh(ticket=ticket)))
                return

    def _stop_renewal(self) -> None:
        if self._renewal is not None:
            self._renewal.cancel()
            self._renewal = None


def _no_credentials(cause: Exception) -> Ending:
    return protocol.try_again(f"the credentials could not be had: {cause!r}", cause)
