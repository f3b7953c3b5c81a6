"""A watch in a program: its rows, and an iteration over their changes."""

import asyncio
import json
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Self

from google.protobuf.json_format import MessageToDict

from statecast.push.v2 import push_pb2
from statecast_client.errors import StatecastError
from statecast_client.push.places import Change, Frame, Path, Place, Places, Row


class Watch:
    """The rows of a key, a range, a query in steps or a channel, and their changes.

    Iterate over it for a Change at each token: `async for change in watch`. It keeps one unread change per place: a
    slow reader gets several changes as one, and `skipped` of a row counts the versions that were left out. The
    iteration ends when the watch or the client is closed, and raises PushRefusedError when the server ends the watch.
    One reader at a time.
    """

    def __init__(
        self,
        request: push_pb2.Watch,
        resume: Mapping[str, Any] | None,
        unwatch: Callable[["Watch"], None],
        stale: Callable[["Watch"], float | None],
    ) -> None:
        """`request` has no token. `unwatch` ends the watch at the server; `stale` returns how far it is behind."""
        if resume is not None and not resume.keys() - {"below"} and not resume.get("below"):
            resume = None  # saved before the first token
        places = () if resume is None else (resume, *resume.get("below", ()))
        request.delta = not request.channel and all("rows" in place for place in places)
        self._request: dict[str, Any] = MessageToDict(request, preserving_proto_field_name=True)
        self.state = Places(resume)
        """The rows and tokens, which the client updates by frames."""
        self.number: int | None = None
        """The number of the watch on this socket; None before its request is sent, and after its end at the edge."""
        self._unwatch = unwatch
        self._stale = stale
        self._unread: dict[Path, Change] = {}
        self._end: Exception | None = None
        self._woken = asyncio.Event()

    @property
    def rows(self) -> Mapping[str, Row]:
        """The rows by their keys, as of `token`."""
        return MappingProxyType(self.state[()].rows)

    @property
    def token(self) -> str:
        """The token of `rows`; empty before the first rows are complete."""
        return self.state[()].token

    @property
    def places(self) -> Mapping[Path, Place]:
        """The watch itself, at the empty path, and the places below it, each with its `rows` and its `token`."""
        return {path: self.state[path] for path in self.state}

    @property
    def current(self) -> bool:
        """Whether everything has come since it began on this socket."""
        return self.state.current

    @property
    def resumed(self) -> bool | None:
        """Whether it resumed from its token when it last began; None before."""
        return self.state.resumed

    @property
    def stale(self) -> float | None:
        """For how many seconds the rows may be out of date; None while the connection and the edge's reads work."""
        return self._stale(self)

    def saved(self) -> dict[str, Any]:
        """Returns its rows and tokens as JSON. Pass them to `watch` as `resume`, also after a restart."""
        return self.state.saved()

    def unwatch(self) -> None:
        """Ends the watch. Unread changes are dropped."""
        self._unread.clear()
        self.finish(None)
        self._unwatch(self)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Change:
        while not self._unread:
            if self._end is not None:
                raise self._end
            self._woken.clear()
            await self._woken.wait()
        return self._unread.pop(next(iter(self._unread)))

    def request(self, number: int, room: int) -> Frame:
        """Returns the request with a number, and as many tokens of places below as fit into `room` bytes of JSON."""
        self.number = number
        request, below = {"id": number, **self._request}, list[Frame]()
        if self.token:
            request["token"] = self.token
        room -= len(json.dumps(request)) + len('"below":[]')
        for path, token in self.state.tokens():
            place = {"path": path, "token": token}
            room -= len(json.dumps(place)) if path else 0
            if room < 0:
                break
            below += [place] if path else []
        return {**request, "below": below} if below else request

    def take(self, frame: Frame) -> None:
        """Takes a frame about the watch. Raises PushError for a frame that contradicts the rows."""
        for change in self.state.take(frame):
            unread = self._unread.get(change.path)
            self._unread[change.path] = unread.followed_by(change) if unread else change
            self._woken.set()

    def cut(self) -> None:
        """Notes that the socket, or the watch on it, has ended."""
        self.number = None
        self.state.cut()

    def finish(self, error: StatecastError | None) -> None:
        """Ends the iteration after the unread changes, with the error if there is one."""
        self._end = error or StopAsyncIteration()
        self._woken.set()
