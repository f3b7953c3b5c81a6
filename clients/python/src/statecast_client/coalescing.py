"""Gathers single lookups that are in flight at the same time into batches, as data loaders do."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Hashable, Sequence
from copy import copy
from functools import partial
from typing import Any, Generic, TypeVar

MAX_BATCH = 1000
_MAX_IN_FLIGHT = 4
_MAX_WAIT_S = 0.005

Group = TypeVar("Group", bound=Hashable)
Item = TypeVar("Item")
Result = TypeVar("Result")


class _Queue(Generic[Item, Result]):
    """One group's calls in flight, and its items that still wait."""

    __slots__ = ("in_flight", "is_gathering", "timer", "waiting")

    def __init__(self) -> None:
        self.waiting: list[tuple[Item, asyncio.Future[Result | None]]] = []
        self.in_flight = 0
        self.is_gathering = False
        """Whether the first caller of this turn of the event loop waits for others to join it."""
        self.timer: asyncio.TimerHandle | None = None


class Coalescer(Generic[Group, Item, Result]):
    """Looks up items one by one when they come one by one, and in batches when many are in flight.

    Those of one group that are asked for in one turn of the event loop go out at its end; one that is alone in its turn
    goes by itself. While `max_in_flight` calls of a group are in flight, later items gather until one of these has
    ended, for `max_wait_s` at most, so that a call that hangs delays no others. A caller that is cancelled cancels
    nobody else: a batch that all callers have left runs to its end.
    """

    def __init__(
        self,
        alone: Callable[[Group, Item], Awaitable[Result]],
        together: Callable[[Group, Sequence[Item]], Coroutine[Any, Any, Sequence[Result | Exception | None]]],
        *,
        max_batch: int = MAX_BATCH,
        max_in_flight: int = _MAX_IN_FLIGHT,
        max_wait_s: float = _MAX_WAIT_S,
    ) -> None:
        """`alone` looks up one item, and `together` at most `max_batch` items.

        That returns for each item, in their order, its result, or the error for its caller, or None: the caller then
        looks it up alone. When it raises, each caller gets a copy of the error.
        """
        self._alone = alone
        self._together = together
        self._max_batch = max_batch
        self._max_in_flight = max_in_flight
        self._max_wait_s = max_wait_s
        self._queues: dict[Group, _Queue[Item, Result]] = {}
        self._tasks: set[asyncio.Task[Sequence[Result | Exception | None]]] = set()

    def close(self) -> None:
        """Cancels the batches in flight, and with them their callers."""
        for task in self._tasks:
            task.cancel()

    async def result(self, group: Group, item: Item) -> Result:
        """Returns the result of an item. Raises its error."""
        queue = self._queue(group)
        if queue.is_gathering or queue.in_flight >= self._max_in_flight:
            result = await self._join(group, queue, item)
        elif await self._is_alone(group, queue):
            return await self._ask_alone(group, queue, item)
        else:
            future = self._join(group, queue, item)
            self._send(group, queue)
            result = await future
        return await self._alone(group, item) if result is None else result

    async def _is_alone(self, group: Group, queue: _Queue[Item, Result]) -> bool:
        """Returns at the end of this turn of the event loop whether no other item has joined in it."""
        queue.is_gathering = True
        try:
            await asyncio.sleep(0)
        except asyncio.CancelledError:
            queue.is_gathering = False
            self._send(group, queue)
            raise
        queue.is_gathering = False
        return not queue.waiting

    async def _ask_alone(self, group: Group, queue: _Queue[Item, Result], item: Item) -> Result:
        queue.in_flight += 1
        try:
            return await self._alone(group, item)
        finally:
            self._ended(group, queue)

    def _queue(self, group: Group) -> _Queue[Item, Result]:
        queue = self._queues.get(group)
        if queue is None:
            queue = self._queues[group] = _Queue()
        return queue

    def _join(self, group: Group, queue: _Queue[Item, Result], item: Item) -> "asyncio.Future[Result | None]":
        future: asyncio.Future[Result | None] = asyncio.get_running_loop().create_future()
        queue.waiting.append((item, future))
        if not queue.is_gathering:
            self._set_timer(group, queue)
        return future

    def _set_timer(self, group: Group, queue: _Queue[Item, Result]) -> None:
        if queue.timer is None:
            loop = asyncio.get_running_loop()
            queue.timer = loop.call_later(self._max_wait_s, self._send, group, queue, True)

    def _send(self, group: Group, queue: _Queue[Item, Result], is_due: bool = False) -> None:
        """Sends waiting items, as far as `max_in_flight` allows; all when it `is_due`."""
        if queue.timer is not None:
            queue.timer.cancel()
            queue.timer = None
        while queue.waiting and (is_due or queue.in_flight < self._max_in_flight):
            batch, queue.waiting = queue.waiting[: self._max_batch], queue.waiting[self._max_batch :]
            batch = [(item, future) for item, future in batch if not future.done()]  # the others were cancelled
            if batch:
                self._send_batch(group, queue, batch)
        if queue.waiting:
            self._set_timer(group, queue)
        elif not queue.in_flight and not queue.is_gathering:
            self._queues.pop(group, None)

    def _send_batch(
        self, group: Group, queue: _Queue[Item, Result], batch: Sequence[tuple[Item, "asyncio.Future[Result | None]"]]
    ) -> None:
        queue.in_flight += 1
        task = asyncio.get_running_loop().create_task(self._together(group, [item for item, _ in batch]))
        self._tasks.add(task)
        task.add_done_callback(partial(self._deliver, group, queue, [future for _, future in batch]))

    def _ended(self, group: Group, queue: _Queue[Item, Result]) -> None:
        queue.in_flight -= 1
        if not queue.is_gathering:
            self._send(group, queue)

    def _deliver(
        self,
        group: Group,
        queue: _Queue[Item, Result],
        futures: Sequence["asyncio.Future[Result | None]"],
        task: "asyncio.Task[Sequence[Result | Exception | None]]",
    ) -> None:
        self._tasks.discard(task)
        self._ended(group, queue)
        if task.cancelled():
            for future in futures:
                future.cancel()
            return
        error = task.exception()
        if error is not None:
            for future in futures:
                if not future.done():
                    future.set_exception(_copy_of(error))
            return
        for future, result in zip(futures, task.result(), strict=True):
            if future.done():
                continue  # its caller was cancelled
            if isinstance(result, Exception):
                future.set_exception(result)
            else:
                future.set_result(result)


def _copy_of(error: BaseException) -> BaseException:
    """Returns the error once more: one that many callers raise would gather the traces of all."""
    own = copy(error)
    own.__cause__ = error
    return own
