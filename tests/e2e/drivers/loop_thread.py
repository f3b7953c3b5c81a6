"""An event loop on a thread of its own, for clients that watch while a test goes on."""

import asyncio
import threading
from abc import ABC, abstractmethod
from typing import Self


class LoopThread(ABC):
    """Runs `watch_all` while it is entered, and keeps the error that ends it."""

    def __init__(self, name: str) -> None:
        """`name` is that of the thread."""
        self._thread = threading.Thread(target=self._run, name=name)
        self._ended: BaseException | None = None

    def __enter__(self) -> Self:
        self._loop = asyncio.new_event_loop()
        self._task = self._loop.create_task(self.watch_all())
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._task.cancel)
        self._thread.join()
        self._loop.close()

    @abstractmethod
    async def watch_all(self) -> None:
        """Watches until it is cancelled."""

    def check(self) -> None:
        """Raises the error that has ended the watchers, if any."""
        if self._ended is not None:
            raise self._ended

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self._task)
        except asyncio.CancelledError:
            return
        except BaseException as error:  # noqa: BLE001  `check` raises it where it is seen
            self._ended = error
