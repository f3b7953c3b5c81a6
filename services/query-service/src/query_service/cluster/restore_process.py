"""Restores partitions in a process of its own, on another core than the instance restores the others on."""

import asyncio
import signal
from collections.abc import Callable, Sequence
from contextlib import suppress
from multiprocessing import Pipe, get_context
from multiprocessing.connection import Connection
from typing import NamedTuple

import structlog

from query_service.cluster.shard_map import StorePartition
from query_service.metrics import Metrics, RecordCounts
from query_service.storage.progress import EndOffset
from query_service.storage.store_directory import Topic
from query_service.storage.stores_file import StoreDefinition

_MIN_RECORDS = 10_000
_MAX_PARTITIONS = 16  # at a time: each has a database open
_END_S = 5.0

_log = structlog.get_logger()

Asked = tuple[StoreDefinition, Topic, int, EndOffset]


class Restored(NamedTuple):
    """A partition that the child has closed, the first offset that it has not applied, and what it counted."""

    key: StorePartition
    next_offset: int
    counts: Sequence[RecordCounts]


class RestoreProcess:
    """A child that restores a share of the partitions with an empty disk, and ends with the parent or at `stop`.

    The child reads a partition into its directory by the same code as the instance, up to the end that was known, and
    closes it. Then the instance opens the directory and goes on from the offset noted there, as it does after the child
    has died. Once it is gone, the instance restores all.
    """

    def __init__(self, serve: Callable[[Connection], None]) -> None:
        """Forks, which costs no import: no other thread may run yet. The child calls `serve`."""
        self._connection, theirs = Pipe()
        self._process = get_context("fork").Process(target=_serve, args=(serve, theirs, self._connection), daemon=True)
        self._process.start()
        theirs.close()
        self._waiting: dict[StorePartition, asyncio.Future[Restored | None]] = {}
        self._places = asyncio.Semaphore(_MAX_PARTITIONS)
        self._own_records = self._child_records = 0
        self._ended = False

    async def restore(
        self, definition: StoreDefinition, topic: Topic, partition: int, end: EndOffset, metrics: Metrics
    ) -> None:
        """Returns when the child has restored the partition, has died, or at once if it is the instance's to restore.

        The child gets a partition when it then has no more records to restore than the instance. A cancellation ends
        the child.
        """
        records = end.offset
        if self._ended or definition.in_memory or records < _MIN_RECORDS or self._child_records >= self._own_records:
            self._own_records += records
            return
        self._child_records += records
        async with self._places:
            restored = await self._ask((definition, topic, partition, end))
        if restored is None:
            _log.warning("the process for restores has ended; the instance goes on", store=definition.name)
            return
        metrics.restore_records.labels(definition.name).inc(restored.next_offset)
        metrics.add_records(restored.counts)
        _log.info("restored in a process of its own", store=definition.name, partition=partition)

    async def stop(self) -> None:
        """Ends the child, whatever it does. Doing it again does nothing."""
        self._process.terminate()
        await asyncio.to_thread(self._process.join, _END_S)

    async def _ask(self, asked: Asked) -> Restored | None:
        """Returns None when the child has ended before."""
        if self._ended:
            return None
        loop, key = asyncio.get_running_loop(), (asked[0].name, asked[2])
        loop.add_reader(self._connection.fileno(), self._read)
        with suppress(OSError):  # it has died, which `_read` learns
            self._connection.send(asked)
        answer: asyncio.Future[Restored | None] = loop.create_future()
        self._waiting[key] = answer
        try:
            return await answer
        except asyncio.CancelledError:
            self._process.terminate()
            raise
        finally:
            self._waiting.pop(key, None)

    def _read(self) -> None:
        try:
            restored: Restored = self._connection.recv()
        except (EOFError, OSError):
            self._ended = True
            asyncio.get_running_loop().remove_reader(self._connection.fileno())
            self._process.join(_END_S)  # it has closed its end, so it is about to; then its directories can be opened
            for answer in self._waiting.values():
                answer.set_result(None)
        else:
            if (waiting := self._waiting.get(restored.key)) is not None:
                waiting.set_result(restored)


def _serve(serve: Callable[[Connection], None], connection: Connection, parents: Connection) -> None:
    parents.close()  # so that the child reads the end when the parent is gone, however it went
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends it to both; the parent ends the child
    serve(connection)
