"""One runner of a run: handles the rows of the instance beside it, until all runners together have handled all rows."""

import asyncio
from collections.abc import Callable
from contextlib import aclosing, suppress
from dataclasses import dataclass, field

import structlog

from statecast.jobs.v1.job_pb2 import JobRecord, PartitionsCompleted, RowEnded, RowStarted, RunnerAlive
from statecast.query.v1.query_pb2 import State
from statecast_client.errors import StatecastError
from statecast_jobs.job_topic import JobTopic
from statecast_jobs.ledger import Ledger, RowKey, Status, row_key
from statecast_jobs.local_rows import LocalRows
from statecast_jobs.row_command import RowCommand

LOOK_S = 1.0

log = structlog.get_logger()


@dataclass(frozen=True)
class Choices:
    """The settings of a run. `repeat_in_doubt` begins a row again when its runner died on the way."""

    run: str
    store: str
    runner: str
    parallel: int = 4
    max_attempts: int = 3
    lease_s: float = 15.0
    repeat_in_doubt: bool = False


@dataclass(frozen=True)
class Outcome:
    """The outcome of the rows that were begun, by all runners; `complete` says that these are all rows."""

    complete: bool
    handled: int = 0
    failed: list[tuple[RowKey, str]] = field(default_factory=list)
    in_doubt: list[RowKey] = field(default_factory=list)


class Runner:
    """Needs a running event loop; `clock` tells seconds and never goes back."""

    def __init__(
        self,
        choices: Choices,
        partitions: frozenset[int],
        topic: JobTopic,
        rows: LocalRows,
        command: RowCommand,
        clock: Callable[[], float],
    ) -> None:
        """`partitions` are all of the store."""
        self._choices, self._partitions = choices, partitions
        self._topic, self._rows, self._command, self._clock = topic, rows, command, clock
        self._ledger = Ledger(choices.runner, choices.max_attempts, choices.lease_s)
        self._heard = asyncio.Condition()
        self._slots = asyncio.Semaphore(choices.parallel)
        self._caught_up = asyncio.Event()

    async def run(self, stopping: asyncio.Event) -> Outcome:
        """Returns when the run is complete, or soon after `stopping`: rows in work come to their end.

        Raises KafkaLostError and InstanceError. An instance that does not answer is waited for.
        """
        reading, working = asyncio.create_task(self._read()), asyncio.create_task(self._work(stopping))
        beating = asyncio.create_task(self._beat())
        try:
            done, _ = await asyncio.wait({reading, working, beating}, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            for task in (working, beating, reading):
                task.cancel()
            # Reading last: it hands over the written records.
            await asyncio.gather(working, beating, reading, return_exceptions=True)
        return self._outcome()

    async def _read(self) -> None:
        async with aclosing(self._topic.read()) as batches:
            async for batch in batches:
                if batch is None:
                    self._caught_up.set()
                    continue
                async with self._heard:
                    for record in batch:
                        self._ledger.apply(record, self._clock())
                    self._heard.notify_all()

    async def _beat(self) -> None:
        while True:
            self._write(RunnerAlive())
            await asyncio.sleep(self._choices.lease_s / 5)

    async def _work(self, stopping: asyncio.Event) -> None:
        await self._caught_up.wait()
        # A row in doubt seems to be in work: the lease of its runner begins anew as its records are read.
        in_doubt = {Status.IN_DOUBT, Status.RUNNING} if self._choices.repeat_in_doubt else set()
        if any(status is Status.OPEN or status in in_doubt for _, status, _ in self._ledger.rows(self._clock())):
            # More attempts, or rows in doubt, are wanted than by those who have completed the run before.
            self._ledger.completed.clear()
        while not stopping.is_set() and not self._is_complete():
            try:
                if await self._rows.owned() - self._ledger.completed:
                    await self._scan(stopping)
            except StatecastError as error:
                log.warning(
                    "the instance does not answer, or lags; it is asked again, and its partitions may go to others",
                    reason=str(error),
                )
            if not self._is_complete():
                with suppress(TimeoutError):
                    await asyncio.wait_for(stopping.wait(), LOOK_S)
        if self._is_complete():
            # Once more, for runners that have begun meanwhile: they may have forgotten what was completed before.
            self._write(PartitionsCompleted(partitions=sorted(self._ledger.completed)))

    def _is_complete(self) -> bool:
        return self._partitions <= self._ledger.completed

    async def _scan(self, stopping: asyncio.Event) -> None:
        partitions: frozenset[int] = frozenset()
        settled = True
        async with aclosing(self._rows.pages()) as pages:
            async for page in pages:
                partitions = page.partitions
                settled &= all(await asyncio.gather(*(self._settle(row, stopping) for row in page.rows)))
                if stopping.is_set():
                    return
        if partitions and settled:
            self._write(PartitionsCompleted(partitions=sorted(partitions)))
            await self._until(lambda: partitions <= self._ledger.completed)

    async def _settle(self, row: State, stopping: asyncio.Event) -> bool:
        """Handles the row if nobody has, and nobody does; False when another look at it is needed."""
        key = row_key(row.key)
        async with self._slots:
            while not stopping.is_set():
                status = self._ledger.status(key, self._clock())
                if status is Status.RUNNING:
                    return False
                if not self._may_begin(status):
                    return True
                await self._attempt(row, key)
            return False

    def _may_begin(self, status: Status) -> bool:
        return status is Status.OPEN or (status is Status.IN_DOUBT and self._choices.repeat_in_doubt)

    async def _attempt(self, row: State, key: RowKey) -> None:
        attempt = self._ledger.next_attempt(key)
        self._write(RowStarted(key=row.key, attempt=attempt), row.key.group)
        await self._until(lambda: self._ledger.next_attempt(key) > attempt)
        if not self._ledger.is_mine(key, attempt):
            return
        result = await self._command.run(row, attempt)
        if not result.succeeded:
            log.warning("row failed", key="/".join(filter(None, key)), attempt=attempt, reason=result.reason)
        ended = RowEnded(key=row.key, attempt=attempt, succeeded=result.succeeded, reason=result.reason)
        self._write(ended, row.key.group)
        await self._until(lambda: not self._ledger.is_mine(key, attempt))

    async def _until(self, holds: Callable[[], bool]) -> None:
        async with self._heard:
            await self._heard.wait_for(holds)

    def _write(self, event: RowStarted | RowEnded | PartitionsCompleted | RunnerAlive, group: str = "") -> None:
        choices = self._choices
        record = JobRecord(run=choices.run, store=choices.store, runner=choices.runner)
        [name] = [each.name for each in record.DESCRIPTOR.fields if each.message_type == event.DESCRIPTOR]
        getattr(record, name).CopyFrom(event)
        self._topic.write(record, group)

    def _outcome(self) -> Outcome:
        rows, complete = list(self._ledger.rows(self._clock())), self._is_complete()
        # Who has completed the run has waited for the lease of a row that seems to be in work here.
        unknown = {Status.IN_DOUBT, Status.RUNNING} if complete else {Status.IN_DOUBT}
        # Other runners may have completed its partition after fewer attempts.
        failed = {Status.FAILED, Status.OPEN} if complete else {Status.FAILED}
        return Outcome(
            complete,
            sum(status is Status.DONE for _, status, _ in rows),
            [(key, reason) for key, status, reason in rows if status in failed],
            [key for key, status, _ in rows if status in unknown],
        )
