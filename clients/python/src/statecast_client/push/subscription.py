"""One watched key as its reader sees it."""

import asyncio
from collections.abc import Awaitable, Callable

from statecast.push.v1.push_pb2 import Changed, Removed
from statecast.state.v1.state_pb2 import Position
from statecast_client.push.errors import PushError
from statecast_client.push.frames import Name

Update = Changed | Removed
"""What a key holds now: `Changed.row` is packed in an Any; `Removed` when there is nothing."""


class Subscription:
    """Iterate over it for what the key holds and each newer value.

    It keeps the newest update alone: a reader that is slower than the changes gets the newest, whose `skipped` counts
    those that it replaces. The iteration ends when the subscription is ended or the client is closed, and raises
    PushRefusedError when the server refuses. One reader at a time.
    """

    def __init__(
        self, name: Name, position: Position | None, interval_ms: int | None, end: Callable[[], Awaitable[None]]
    ) -> None:
        self.name = name
        self.position = position
        """The position of the newest update that has come, or the one to begin after."""
        self.interval_ms = interval_ms
        self.request = ""
        """The id of the frame that asked for it last."""
        self.recovered: bool | None = None
        """Whether the server took up the position when the subscription came into force last; None before."""
        self._end = end
        self._newest: Update | None = None
        self._error: PushError | None = None
        self._ended = False
        self._woken = asyncio.Event()

    async def unsubscribe(self) -> None:
        """Ends the subscription; an update that has not been read is dropped."""
        self._newest = None
        self.finish(None)
        await self._end()

    def put(self, update: Update) -> None:
        """The server has sent an update."""
        self.position = update.position
        if self._newest is not None:
            update.skipped += self._newest.skipped + 1
        self._newest = update
        self._woken.set()

    def finish(self, error: PushError | None) -> None:
        """Nothing more comes; the reader is told why when there is a reason."""
        self._ended, self._error = True, error
        self._woken.set()

    def __aiter__(self) -> "Subscription":
        return self

    async def __anext__(self) -> Update:
        while self._newest is None:
            if self._error is not None:
                raise self._error
            if self._ended:
                raise StopAsyncIteration
            self._woken.clear()
            await self._woken.wait()
        update, self._newest = self._newest, None
        return update
