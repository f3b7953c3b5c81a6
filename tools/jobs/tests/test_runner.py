"""A runner beside an instance that changes, lags or holds odd values."""

import asyncio
import json
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest

from statecast.jobs.v1.job_pb2 import JobRecord, PartitionsCompleted, RowEnded, RowStarted
from statecast.query.v1 import query_pb2
from statecast.query.v1 import query_service_pb2 as query
from statecast.query.v1 import query_service_pb2_grpc as query_grpc
from statecast.state.v1.state_pb2 import StateKey
from statecast_client.errors import BehindError
from statecast_client.rendering import decoder
from statecast_jobs.job_topic import JobTopic
from statecast_jobs.local_rows import InstanceRows
from statecast_jobs.row_command import ProcessCommand, Result, RowCommand
from statecast_jobs.runner import Choices, Outcome, Runner
from testkit.query_service import ManualClock
from testkit.waiting import scaled, wait_until_async

STORE = "orders-by-customer"
CHOICES = Choices("weekly", STORE, "runner", lease_s=1)


def order(sort: str, value: object = "an order", group: str = "alice") -> query_pb2.State:
    key = StateKey(group=group, sort=sort, member="order-1")
    return query_pb2.State(key=key, payload=json.dumps(value).encode())


class Instance(query_grpc.QueryServiceServicer):
    """Owns one partition; each page of it is the next of `pages`."""

    def __init__(self, pages: Sequence[query_pb2.State], lag_ms: int = 0, partition: int = 0) -> None:
        self.pages, self.lag_ms, self.partition = list(pages), lag_ms, partition

    async def ScanStates(self, request: query.ScanStatesRequest, context: Any) -> query.ScanStatesResponse:  # noqa: N802
        shards = [query_pb2.Freshness(partition=self.partition, lag_ms=self.lag_ms)]
        if request.page_size == 1:
            return query.ScanStatesResponse(shards=shards)
        if self.lag_ms > request.bounds.max_lag_ms:
            await context.abort(grpc.StatusCode.FAILED_PRECONDITION, "bounds.max_lag_ms: the lag is above")
        number = int(request.page_token or 0)
        following = str(number + 1) if number + 1 < len(self.pages) else ""
        return query.ScanStatesResponse(states=[self.pages[number]], shards=shards, next_page_token=following)


class Topic(JobTopic):
    """A topic in memory, for all runners of a run."""

    def __init__(self, *records: JobRecord) -> None:
        self.records = list(records)
        self._readers: list[asyncio.Queue[JobRecord]] = []

    def write(self, record: JobRecord, group: str) -> None:
        self.records.append(record)
        for reader in self._readers:
            reader.put_nowait(record)

    async def read(self) -> AsyncGenerator[list[JobRecord] | None, None]:
        newer: asyncio.Queue[JobRecord] = asyncio.Queue()
        self._readers.append(newer)
        yield self.records.copy()
        yield None
        while True:
            yield [await newer.get()]

    def is_completed(self, partition: int) -> bool:
        return any(partition in each.partitions_completed.partitions for each in self.records)


class Recorded(RowCommand):
    """Remembers the rows that it handles, or fails to handle."""

    def __init__(self, reason: str = "") -> None:
        self.rows: list[query_pb2.State] = []
        self._reason = reason

    async def run(self, row: query_pb2.State, attempt: int) -> Result:
        self.rows.append(row)
        return Result(not self._reason, self._reason)


@pytest.fixture
async def servers() -> AsyncIterator[list[grpc.aio.Server]]:
    started: list[grpc.aio.Server] = []
    yield started
    for server in started:
        await server.stop(None)


async def beside(instance: Instance, servers: list[grpc.aio.Server], clock: ManualClock) -> InstanceRows:
    server = grpc.aio.server()
    query_grpc.add_QueryServiceServicer_to_server(instance, server)
    address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    await server.start()
    servers.append(server)
    return InstanceRows(grpc.aio.insecure_channel(address), address, STORE, 10, clock)


async def run(
    rows: InstanceRows,
    command: RowCommand,
    topic: Topic | None = None,
    choices: Choices = CHOICES,
    partitions: frozenset[int] = frozenset({0}),
) -> Outcome:
    runner = Runner(choices, partitions, topic or Topic(), rows, command, asyncio.get_running_loop().time)
    async with asyncio.timeout(scaled(20)):
        return await runner.run(asyncio.Event())


async def test_a_row_that_changes_its_sort_value_during_a_run_is_handled_once(servers: list[grpc.aio.Server]) -> None:
    command = Recorded()
    rows = await beside(Instance([order("2026-01-01"), order("2026-01-02")]), servers, ManualClock())  # type: ignore[abstract]
    outcome = await run(rows, command)

    assert outcome == Outcome(complete=True, handled=1)
    assert [row.key.sort for row in command.rows] == ["2026-01-01"]


async def test_a_row_keeps_its_id_when_its_sort_value_changes(tmp_path: Path) -> None:
    script = "import os, sys; print(os.environ['STATECAST_JOB_ROW_ID'], file=open(sys.argv[1], 'a'))"
    ids = tmp_path / "ids"
    command = ProcessCommand([sys.executable, "-c", script, str(ids)], "weekly", STORE, decoder("json"), 60)
    results = [await command.run(order(sort), 1) for sort in ("2026-01-01", "2026-01-02")]

    assert all(result.succeeded for result in results)
    assert ids.read_text().split() == ["50ab89573d2b2d4cb7f3ec94c27bd41e"] * 2, "other ids than those of 0.3.0"


async def test_rows_that_the_instance_has_not_applied_when_the_run_begins_are_waited_for(
    servers: list[grpc.aio.Server],
) -> None:
    clock = ManualClock()
    rows = await beside(Instance([order("2026-01-01")], lag_ms=5000), servers, clock)  # type: ignore[abstract]
    clock.now += 4
    with pytest.raises(BehindError):
        await anext(rows.pages())
    clock.now += 2

    assert (await anext(rows.pages())).rows == [order("2026-01-01")]


async def test_a_row_with_half_a_surrogate_is_handled(servers: list[grpc.aio.Server], tmp_path: Path) -> None:
    script = "import json, sys; open(sys.argv[1], 'w').write(repr(json.load(sys.stdin)['value']))"
    command = ProcessCommand(
        [sys.executable, "-c", script, str(tmp_path / "value")], "weekly", STORE, decoder("json"), 60
    )
    rows = await beside(Instance([order("2026-01-01", "half \ud83d of a smile")]), servers, ManualClock())  # type: ignore[abstract]
    outcome = await run(rows, command)

    assert outcome == Outcome(complete=True, handled=1)
    assert (tmp_path / "value").read_text() == repr("half \ud83d of a smile")


async def test_a_runner_that_is_started_again_hears_which_partitions_others_have_completed(
    servers: list[grpc.aio.Server],
) -> None:
    topic, both, row = Topic(), frozenset({0, 1}), order("2026-01-01", group="bob")
    other = await beside(Instance([order("2026-01-01")]), servers, ManualClock())  # type: ignore[abstract]
    rows = await beside(Instance([row], partition=1), servers, ManualClock())  # type: ignore[abstract]
    waiting = asyncio.create_task(run(other, Recorded(), topic, replace(CHOICES, runner="other"), both))
    await wait_until_async(lambda: topic.is_completed(0), "partition 0 is not completed")
    topic.write(JobRecord(runner="stopped", row_started=RowStarted(key=row.key, attempt=1)), "bob")
    topic.write(JobRecord(runner="stopped", row_ended=RowEnded(key=row.key, attempt=1)), "bob")
    outcomes = await asyncio.gather(waiting, run(rows, Recorded(), topic, partitions=both))

    assert list(outcomes) == [Outcome(complete=True, handled=2)] * 2


async def test_a_row_that_failed_too_often_for_another_runner_has_failed(servers: list[grpc.aio.Server]) -> None:
    topic, both = Topic(), frozenset({0, 1})
    other = await beside(Instance([order("2026-01-01")]), servers, ManualClock())  # type: ignore[abstract]
    rows = await beside(Instance([order("2026-01-01", group="bob")], partition=1), servers, ManualClock())  # type: ignore[abstract]
    once = replace(CHOICES, runner="other", max_attempts=1)
    waiting = asyncio.create_task(run(other, Recorded("no"), topic, once, both))
    await wait_until_async(lambda: topic.is_completed(0), "partition 0 is not completed")
    outcomes = await asyncio.gather(waiting, run(rows, Recorded(), topic, partitions=both))

    assert list(outcomes) == [Outcome(complete=True, handled=1, failed=[(("alice", "order-1"), "no")])] * 2


async def test_a_row_in_doubt_is_handled_again_after_the_run_was_complete(servers: list[grpc.aio.Server]) -> None:
    row = order("2026-01-01")
    topic = Topic(
        JobRecord(runner="killed", row_started=RowStarted(key=row.key, attempt=1)),
        JobRecord(runner="other", partitions_completed=PartitionsCompleted(partitions=[0])),
    )
    rows = await beside(Instance([row]), servers, ManualClock())  # type: ignore[abstract]
    reported = await run(rows, Recorded(), topic)
    repeated = await run(rows, Recorded(), topic, replace(CHOICES, runner="repeats", repeat_in_doubt=True))

    assert reported == Outcome(complete=True, in_doubt=[("alice", "order-1")])
    assert repeated == Outcome(complete=True, handled=1)
