"""The interface for programs: watches over one live connection to an edge."""

import asyncio
import logging
import ssl
from collections.abc import Mapping, Sequence
from time import monotonic
from typing import Any, Self

from statecast.push.v2 import push_pb2
from statecast_client.errors import StatecastError
from statecast_client.push.access import Access, Credentials
from statecast_client.push.connection import Connection
from statecast_client.push.places import Frame
from statecast_client.push.protocol import PushError, refusal_of
from statecast_client.push.requests import Requests
from statecast_client.push.watches import Watch

log = logging.getLogger(__name__)


class PushClient:
    """A client that keeps watches over one live connection to an edge.

    Use it so: `async with PushClient("wss://gateway/v1/stream", credentials={"apikey": KEY}) as client: …`

    It connects again by itself, to the next address when there are several, and resumes every watch after its last
    token. When the server refuses it for good, or newer credentials cannot be had, it ends: then every watch, and every
    later call, raises why. `push/protocol.py` says which events end it.
    """

    def __init__(
        self,
        addresses: str | Sequence[str],
        *,
        credentials: Credentials | None = None,
        tls: ssl.SSLContext | None = None,
        proxy: str | None = None,
    ) -> None:
        """`credentials` are the headers of the handshake, or a function that returns them, asynchronously or not.

        The function is called for each connection (`"connect"`); while one is open, with a fifth of the time left until
        its access ends, but at most 5 minutes ahead (`"expiring"`): it is renewed with a ticket from `/v1/tickets`, and
        goes on without a gap; and once when the server no longer accepts the last ones (`"expired"`). When it raises it
        is called again; but a StatecastError ends the client, unless it is connected. `proxy` is as in
        StatecastClient. Raises PushError for a wrong address.
        """
        urls = [addresses] if isinstance(addresses, str) else addresses
        self._connection = Connection(urls, Access(credentials or {}, tls, proxy), self._ask, self._receive)
        self._watches: dict[Watch, None] = {}
        self._resting = set[Watch]()
        """The watches that the edge has ended for a while. They wait for its end on a new socket, too."""
        self._requests = Requests()
        self._requested = asyncio.Event()
        self._blind: Sequence[Frame] = ()
        self._ended: StatecastError | None = PushError("this client is not open: use it in `async with`")

    async def __aenter__(self) -> Self:
        self._ended = None
        self._run = asyncio.create_task(self._stay_connected())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._run.cancel()
        await asyncio.gather(self._run, return_exceptions=True)
        self._finish(PushError("this client is closed"), None)

    @property
    def reason(self) -> StatecastError | None:
        """Why it has ended, is not connected now, or could not renew its access; None while all is well."""
        return self._ended or self._connection.reason

    async def opened(self) -> None:
        """Returns as soon as it is connected. Raises why the client has ended."""
        if self._ended is None:
            waiting = asyncio.create_task(self._connection.opened.wait())
            try:
                await asyncio.wait((waiting, self._run), return_when=asyncio.FIRST_COMPLETED)
            finally:
                waiting.cancel()
        if self._ended is not None:
            raise self._ended

    async def check(self) -> None:
        """Makes sure that the line is alive, for a program that has slept: one without a frame for 5 s is made anew."""
        await self._connection.check()

    def watch(
        self,
        store: str,
        group: str,
        *,
        sort_from: str = "",
        sort_to: str = "",
        limit: int = 0,
        reverse: bool = False,
        steps: Sequence[push_pb2.Step] = (),
        fields: Sequence[str] = (),
        times: bool = False,
        interval_ms: int | None = None,
        resume: Mapping[str, Any] | None = None,
    ) -> Watch:
        """Watches a key, a range of a group, or with `steps` a query. The arguments are those of a Watch frame.

        `resume` is the result of `saved()` of a watch, or a page by REST of the same range: newer rows follow, or all
        rows when there is no other way. Raises PushError when it is neither, and the client's error when it has ended.
        """
        request = push_pb2.Watch(
            store=store,
            group=group,
            sort_from=sort_from,
            sort_to=sort_to,
            limit=limit,
            reverse=reverse,
            steps=steps,
            fields=fields,
            times=times,
            interval_ms=interval_ms,
        )
        return self._begin(request, resume)

    def watch_channel(self, channel: str, *, resume: Mapping[str, Any] | None = None) -> Watch:
        """Watches a channel: its rows are its watches by name, and each is a place below. Else as `watch`."""
        return self._begin(push_pb2.Watch(channel=channel), resume)

    def _begin(self, request: push_pb2.Watch, resume: Mapping[str, Any] | None) -> Watch:
        if self._ended is not None:
            raise self._ended
        watch = Watch(request, resume, self._unwatch, self._stale)
        self._watches[watch] = None
        self._request(watch)
        return watch

    def _request(self, watch: Watch) -> None:
        """Asks for a watch, also for one that the edge has ended and would take again."""
        self._resting.discard(watch)
        if watch in self._watches:
            self._requests.watch(watch)
            self._requested.set()

    def _unwatch(self, watch: Watch) -> None:
        if watch in self._watches:
            del self._watches[watch]
            self._requests.unwatch(watch)
            self._requested.set()

    def _stale(self, watch: Watch) -> float | None:
        if not self._connection.opened.is_set():
            return monotonic() - self._connection.lost_at
        of_watch = (each for each in self._blind if not each.get("ids") or watch.number in each["ids"])
        return max((float(each.get("lag_s", 0)) for each in of_watch), default=None)

    async def _stay_connected(self) -> None:
        try:
            error = await self._connection.run()
        except Exception as bug:  # noqa: BLE001  nobody awaits this task, but readers wait for its rows
            error = PushError(f"the client has failed: {bug!r}")
            error.__cause__ = bug
        self._finish(error, error)

    async def _ask(self) -> None:
        """Asks a new socket for every watch, and for each that is begun or ended later, beside the reading."""
        for watch in self._watches:
            watch.cut()
        self._requests, self._blind = Requests(each for each in self._watches if each not in self._resting), ()
        while True:
            self._requested.clear()
            for text in self._requests.frames(self._connection.max_request_bytes):
                await self._connection.send(text)
            await self._requested.wait()

    def _receive(self, frame: Frame) -> None:
        if "ping" in frame:
            self._blind = frame["ping"].get("blind", ())
            for bookmark in frame["ping"].get("bookmarks", ()):
                if bookmark["id"] in self._requests.by_number:
                    self._requests.by_number[bookmark["id"]].state.bookmark(bookmark)
        watch = self._requests.by_number.get(frame.get("id", 0))
        if watch is None:
            return
        try:
            watch.take(frame)
        except PushError as error:
            log.warning("a watch begins anew: %s", error)
            self._requests.unwatch(watch)
            watch.state.forget_tokens()
            self._request(watch)
            return
        if "ended" in frame and not frame.get("path"):
            self._end(watch, frame["ended"])

    def _end(self, watch: Watch, ended: Frame) -> None:
        self._requests.ended(watch)
        if "retry_ms" in ended:
            self._resting.add(watch)
            asyncio.get_running_loop().call_later(ended["retry_ms"] / 1000, self._request, watch)
            return
        del self._watches[watch]
        watch.finish(refusal_of(ended))

    def _finish(self, ended: StatecastError, of_watches: StatecastError | None) -> None:
        """Ends the client, and its watches with an error if there is one; only the first call counts."""
        if self._ended is None:
            self._ended = ended
            for watch in self._watches:
                watch.finish(of_watches)
            self._watches.clear()
