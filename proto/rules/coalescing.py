"""Gathers single lookups that are in flight at the same time into batches, as data loaders do."""

import asyncio
from collections.abc import Callable, Coroutine, Hashable, Sequence
from copy import copy
from functools import partial
from typing import Any, Generic, TypeVar

Group = TypeVar("Group", bound=Hashable)
Item = TypeVar("Item")
Result = TypeVar("Result")


class _Queue(Generic[Item, Result]):
    """The waiting items of one group, the timer that sends them, and the number of calls in flight."""

    __slots__ = ("in_flight", "timer", "waiting")

    def __init__(self) -> None:
        self.waiting: list[tuple[Item, asyncio.Future[Result]]] = []
        self.in_flight = 0
        self.timer: asyncio.Handle | None = None


class Coalescer(Generic[Group, Item, Result]):
    """Batches the lookups of one group within a turn of the event loop, and sends them at its end.

    While `max_in_flight` calls of a group are in flight, later items wait until one of these has ended, for at most
    `max_wait_s`, so that a call that hangs delays no others. A cancelled caller cancels a call that only it waits for;
    a batch of several callers goes on.
    """

    def __init__(
        self,
        alone: Callable[[Group, Item], Coroutine[Any, Any, Result]],
        together: Callable[[Group, Sequence[Item]], Coroutine[Any, Any, Sequence[Result | Exception | None]]],
        *,
        max_batch: int,
        max_in_flight: int,
        max_wait_s: float = 0.005,
    ) -> None:
        """`together` looks up one item or more, `max_batch` at most, and `alone` one.

        For each item, in order, `together` returns a result, an error for its caller, or None to look the item up
        alone. When it raises, each caller gets a copy of the error.
        """
        self._alone = alone
        self._together = together
        self._max_batch = max_batch
        self._max_in_flight = max_in_flight
        self._max_wait_s = max_wait_s
        self._queues: dict[Group, _Queue[Item, Result]] = {}
        self._tasks: set[asyncio.Task[Any]] = set()

    def close(self) -> None:
        """Cancels the calls in flight, and their callers."""
        for task in self._tasks:
            task.cancel()

    def result(self, group: Group, item: Item) -> "asyncio.Future[Result]":
        """Returns the future of an item's result, or of its error."""
        queue = self._queues.get(group)
        if queue is None:
            queue = self._queues[group] = _Queue()
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Result] = loop.create_future()
        queue.waiting.append((item, future))
        if queue.timer is None and queue.in_flight < self._max_in_flight:
            queue.timer = loop.call_soon(self._send, group, queue)
        elif queue.timer is None:
            queue.timer = loop.call_later(self._max_wait_s, self._send, group, queue, True)
        return future

    def _send(self, group: Group, queue: _Queue[Item, Result], is_due: bool = False) -> None:
        """Sends waiting items, as far as the calls in flight allow; all of them if `is_due`."""
        if queue.timer is not None:
            queue.timer.cancel()
            queue.timer = None
        while queue.waiting and (is_due or queue.in_flight < self._max_in_flight):
            batch, queue.waiting = queue.waiting[: self._max_batch], queue.waiting[self._max_batch :]
            batch = [(item, future) for item, future in batch if not future.done()]  # the others were cancelled
            if batch:
                queue.in_flight += 1
                task = self._task(self._together(group, [item for item, _ in batch]))
                task.add_done_callback(partial(self._deliver, group, queue, batch))
                if len(batch) == 1:
                    _end_with(batch[0][1], task)
        if queue.waiting:
            loop = asyncio.get_running_loop()
            queue.timer = loop.call_later(self._max_wait_s, self._send, group, queue, True)
        elif not queue.in_flight:
            self._queues.pop(group, None)

    def _deliver(
        self,
        group: Group,
        queue: _Queue[Item, Result],
        batch: Sequence[tuple[Item, "asyncio.Future[Result]"]],
        task: "asyncio.Task[Sequence[Result | Exception | None]]",
    ) -> None:
        queue.in_flight -= 1
        self._send(group, queue)
        if task.cancelled():
            for _, future in batch:
                future.cancel()
            return
        results: Sequence[Result | BaseException | None]
        if (error := task.exception()) is None:
            results = task.result()
        else:
            results = [error, *(_copy_of(error) for _ in batch[1:])]
        for (item, future), result in zip(batch, results, strict=True):
            if future.done():
                continue  # its caller was cancelled
            if result is None:
                self._look_up_alone(group, item, future)
            elif isinstance(result, BaseException):
                future.set_exception(result)
            else:
                future.set_result(result)

    def _look_up_alone(self, group: Group, item: Item, future: "asyncio.Future[Result]") -> None:
        task = self._task(self._alone(group, item))
        task.add_done_callback(partial(_settle, future))
        _end_with(future, task)

    def _task(self, work: Coroutine[Any, Any, Any]) -> "asyncio.Task[Any]":
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


def _end_with(future: "asyncio.Future[Any]", task: "asyncio.Task[Any]") -> None:
    """Cancels the only call of a caller that goes away."""
    future.add_done_callback(lambda _: task.cancel())


def _settle(future: "asyncio.Future[Result]", task: "asyncio.Task[Result]") -> None:
    error = None if task.cancelled() else task.exception()  # also so that it counts as retrieved
    if future.done():
        return
    if task.cancelled():
        future.cancel()
    elif error is not None:
        future.set_exception(error)
    else:
        future.set_result(task.result())


def _copy_of(error: BaseException) -> BaseException:
    """Returns a copy of the error: an error that many callers raise would collect all of their tracebacks."""
    own = copy(error)
    own.__cause__ = error
    return own
