"""The steady load on a cluster: a writer of its topic, and a reader at each instance, in a process of their own."""

import asyncio
import multiprocessing
import time
from collections.abc import Callable, Coroutine, Mapping
from contextlib import ExitStack
from multiprocessing.connection import Connection
from threading import Thread
from typing import Any, Concatenate, ParamSpec, TypeVar

import uvloop

from drivers.replica_rows import assert_replicas_equal
from drivers.state_reader import QueryChannel, StateReader, Unanswered
from drivers.state_writer import StateWriter
from testkit.waiting import eventually, scaled

STEADY_READS = 100

T = TypeVar("T")
ANSWER_S = 120
P = ParamSpec("P")


class QueryLoad:
    """Has threads for writes and for reads, and so must live where no process is started: see LoadProcess."""

    def __init__(self, bootstrap: str, topic: str, keys: list[str]) -> None:
        """Neither writes nor reads yet."""
        self._writer = StateWriter(bootstrap, topic, keys)
        self._writing = ExitStack()
        self._readers: list[StateReader] = []
        self._channels: list[QueryChannel] = []
        self._reading: list[asyncio.Task[None]] = []
        self._loop = uvloop.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever)
        self._thread.start()
        self._began = time.monotonic()

    def fill(self) -> None:
        """Writes a first value of every key, and waits until all are acknowledged."""
        self._writer.fill()

    def start_writing(self, rate: float) -> None:
        """Writes so many records a second from now on."""
        self._writing.enter_context(self._writer.writing(rate))

    def stop_writing(self) -> None:
        """Writes no more, and waits until everything is acknowledged."""
        self._writing.close()

    def written(self) -> int:
        """Returns how many records have been acknowledged."""
        return self._writer.log.count

    def start_reading(self, home: str, addresses: Mapping[str, str], rate: float) -> None:
        """Makes `rate` calls a second through the instance `home`; `addresses` are those of all, by name."""
        self._run(self._read(home, addresses, rate))

    def until_steady(self) -> None:
        """Waits until every reader has had another hundred answers from its own instance."""
        before = {reader.home: reader.answered[reader.home] for reader in self._readers}

        def steady() -> None:
            for reader in self._readers:
                answers = reader.answered[reader.home] - before[reader.home]
                assert answers >= STEADY_READS, f"{reader.home}: {answers} answers; {self.failures()}"

        eventually(steady, timeout_s=60)

    def failures(self) -> list[str]:
        """Returns the reads that failed, and the answers that broke a promise."""
        return [each for reader in self._readers for each in [*reader.failed, *reader.checks.broken]]

    def take_unanswered(self) -> list[Unanswered]:
        """Returns the calls that an instance did not answer and another did, since this was asked last."""
        taken = [each for reader in self._readers for each in reader.unanswered]
        for reader in self._readers:
            reader.unanswered.clear()
        return taken

    def rates(self) -> str:
        """Returns how many calls, and keys in them, were answered to each reader a second; for the record."""
        seconds = time.monotonic() - self._began
        rates = (
            f"{reader.home} {reader.answered.total() / seconds:.0f} calls, {reader.checks.answers / seconds:.0f} keys"
            for reader in self._readers
        )
        return f"{'; '.join(rates)} a second; {self.written() / seconds:.0f} records a second"

    def assert_replicas_equal(self, shard_addresses: Mapping[str, str]) -> None:
        """Asserts that all replicas are equal and match the log. Call it only while nothing is written."""
        assert_replicas_equal(shard_addresses, self._writer.log)

    def close(self) -> None:
        """Ends all reads and writes."""
        self.stop_writing()
        self._run(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(scaled(30))

    async def _read(self, home: str, addresses: Mapping[str, str], rate: float) -> None:
        channels = [QueryChannel(name, address) for name, address in addresses.items()]
        self._channels += channels
        reader = StateReader(home, channels, self._writer.log, self._writer.keys)
        self._readers.append(reader)
        self._reading.append(asyncio.create_task(reader.read(rate)))

    async def _close(self) -> None:
        for task in self._reading:
            task.cancel()
        ended = await asyncio.gather(*self._reading, return_exceptions=True)
        for channel in self._channels:
            await channel.close()
        defects = [each for each in ended if isinstance(each, Exception)]

        assert defects == []


class LoadProcess:
    """Calls the methods of a QueryLoad where it lives: `ask(QueryLoad.fill)`."""

    def __init__(self, bootstrap: str, topic: str, keys: list[str]) -> None:
        """Starts the process."""
        context = multiprocessing.get_context("spawn")
        self._connection, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, bootstrap, topic, keys), daemon=True)
        self._process.start()
        theirs.close()

    def ask(self, method: Callable[Concatenate[QueryLoad, P], T], *arguments: P.args, **named: P.kwargs) -> T:
        """Calls the method in the load's process; returns its result or raises its error."""
        self._connection.send((method, arguments, named))
        assert self._connection.poll(scaled(ANSWER_S)), f"the load does not answer {method.__name__}"
        error, result = self._connection.recv()
        if error is not None:
            raise error
        answer: T = result
        return answer

    def close(self) -> None:
        """Ends the load and its process."""
        try:
            self.ask(QueryLoad.close)
        finally:
            self._connection.close()
            self._process.join(scaled(10))
            self._process.kill()
            self._process.join()


def _serve(connection: "Connection[Any, Any]", bootstrap: str, topic: str, keys: list[str]) -> None:
    load = QueryLoad(bootstrap, topic, keys)
    while True:
        try:
            method, arguments, named = connection.recv()
        except EOFError:
            return
        try:
            connection.send((None, method(load, *arguments, **named)))
        except Exception as error:  # noqa: BLE001  the one who asked is told
            connection.send((error, None))
