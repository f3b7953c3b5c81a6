"""Queries that wait for the tables that they join, and queries that fail."""

from typing import Any, cast

import pytest
from confluent_kafka import KafkaError, KafkaException
from prometheus_client import CollectorRegistry
from py4j.protocol import Py4JError

from statecast_service.errors import SettingsError
from stream_processor.errors import (
    CheckpointsUnusableError,
    NoRoomError,
    PipelineChangedError,
    QueryFailedError,
    StandstillError,
)
from stream_processor.metrics import Metrics
from stream_processor.pipeline.pipeline import Pipeline
from stream_processor.run.first_loads import FirstLoads
from stream_processor.run.plan import QueryPlan, plan, topics_of
from stream_processor.run.restarts import MAX_PAUSE_S, OTHERS_PAUSE_S, STEADY_S, DayClock, Restarts
from stream_processor.run.starts import Slots, Starts, Waiting
from stream_processor.run.watch import WatchedQuery
from testkit.stream_processor.fakes import FakeQuery
from testkit.stream_processor.micro_batches import PipelineOf

JOIN = "invoices-with-store"
TABLE = "stores-by-key"
REASON = f"{JOIN} waits for the first checkpoint of {TABLE}, which it joins"
STANDS_STILL = f"{JOIN} waits for {TABLE}, which stands still"


FULL = "its checkpoint or Spark's directory cannot be written: No space left on device"
SPARK_IS_SHORT = "the executors give 1 task slots"


class Stubborn(FakeQuery):
    """A query that does not stop in time."""

    def stop(self) -> None:
        raise Py4JError("TimeoutException")


class Prepared:
    """A query that starts as a fake."""

    def start(self) -> Any:
        return Stubborn([])


class Run:
    """Queries of both pipelines, the joining one first; `ends` is where the table's source ends, or Kafka's error.

    A failure is the last in a row when it is the third.
    """

    def __init__(self, pipelines: list[Pipeline], new: bool = True, ends: dict[int, int] | None = None) -> None:
        plans = plan(pipelines, dict.fromkeys(topics_of(pipelines), 1))
        self.ends: dict[int, int] | KafkaException = ends or {0: 10}
        loads = FirstLoads(plans, lambda _: new, lambda _: self._ends(), dict[str, str])
        self.registry, self.now = CollectorRegistry(), 0.0
        self.again_error, self.absent = cast(Exception | None, None), dict[str, str]()
        self.slots = Slots(40, 0)
        waiting = [Waiting(each, cast(Any, Prepared())) for each in plans]
        self.starts = Starts(
            waiting,
            loads,
            Metrics(self.registry),
            Restarts(3),
            self._again,
            lambda _: self.absent,
            lambda: self.slots,
            clock=lambda: self.now,
        )

    def _again(self, again: QueryPlan) -> Any:
        if self.again_error is not None:
            raise self.again_error
        return again, Prepared()

    def _ends(self) -> dict[int, int]:
        if isinstance(self.ends, KafkaException):
            raise self.ends
        return self.ends

    def fail(self, name: str, reason: str = "no disk") -> None:
        """Ends the query, as one that has failed, and looks."""
        query = cast(Any, self.query(name).query)
        query.isActive, query._error = False, RuntimeError(reason)
        self.starts.take_failed()

    def look(self, after_s: float = 0.0) -> list[str]:
        self.now += after_s
        return self.starts.start()

    def metric(self, name: str, query: str) -> float | None:
        return self.registry.get_sample_value(f"stream_processor_{name}", {"query": query})

    @property
    def running(self) -> set[str]:
        return {each.plan.name for each in self.starts.running}

    def query(self, name: str) -> WatchedQuery:
        return next(each for each in self.starts.running if each.plan.name == name)


@pytest.fixture
def both(shipped: PipelineOf) -> list[Pipeline]:
    return [shipped(JOIN), shipped(TABLE)]


@pytest.fixture
def run(both: list[Pipeline]) -> Run:
    """Both queries, which have checkpoints and run."""
    run = Run(both, new=False)
    run.look()
    return run


def test_a_new_query_starts_once_a_checkpoint_holds_what_its_table_had_to_read(both: list[Pipeline]) -> None:
    run = Run(both)

    assert run.starts.start() == [REASON]
    assert run.starts.start() == [REASON]
    assert run.running == {TABLE}
    run.query(TABLE).started = True
    run.query(TABLE).checkpointed = {"stores": {0: 9}}
    assert run.starts.start() == [REASON]
    run.query(TABLE).checkpointed = {"stores": {0: 10}}
    assert run.starts.start() == []
    assert JOIN in run.running
    assert run.starts.waiting == []


def test_what_comes_to_a_tables_source_until_its_tasks_run_is_awaited_too(both: list[Pipeline]) -> None:
    run = Run(both, ends={0: 0})
    assert run.look() == [REASON]
    run.ends = {0: 10}
    assert run.look() == [REASON]
    run.query(TABLE).started = True
    assert run.look() == [REASON]

    run.query(TABLE).checkpointed = {"stores": {0: 10}}
    run.ends = {0: 20}  # what comes later is as late as any change
    run.look()
    assert JOIN in run.running


def test_while_kafka_does_not_say_where_a_tables_source_ends_a_query_waits(both: list[Pipeline]) -> None:
    run = Run(both)
    run.look()
    run.ends = KafkaException(KafkaError(KafkaError._TRANSPORT))
    run.query(TABLE).started = True
    run.query(TABLE).checkpointed = {"stores": {0: 10}}
    assert run.look() == [REASON]

    run.ends = {0: 10}
    run.look()
    assert JOIN in run.running


def test_a_query_with_a_checkpoint_or_a_table_that_others_write_waits_for_nothing(both: list[Pipeline]) -> None:
    assert Run(both, new=False).starts.start() == []
    assert Run(both[:1]).starts.start() == []


def test_a_table_without_changes_is_not_awaited_for_long(both: list[Pipeline]) -> None:
    run = Run(both, ends={0: 0})

    run.starts.start()
    assert JOIN not in run.running
    run.query(TABLE).started = True
    run.starts.start()
    assert JOIN in run.running


def test_a_new_query_stays_held_while_its_table_stands_still(both: list[Pipeline]) -> None:
    run = Run(both)
    run.starts.start()
    run.starts.stand_still({TABLE: "too many"})

    assert run.starts.start() == []
    assert run.starts.notes() == [f"{TABLE} stands still: too many", STANDS_STILL]
    assert run.running == set()


def test_a_table_that_stands_still_from_the_start_is_awaited_too(both: list[Pipeline]) -> None:
    run = Run(both)
    run.starts.hold_to_limits({TABLE: "too many"})

    assert run.starts.start() == []
    assert STANDS_STILL in run.starts.notes()
    assert JOIN not in run.running


def test_a_held_query_that_is_beyond_its_limit_is_not_started(both: list[Pipeline]) -> None:
    run = Run(both)
    run.starts.start()
    run.starts.stand_still({JOIN: "too many"})

    assert run.starts.start() == []
    assert JOIN not in run.running


def test_without_a_pipeline_within_its_limit_the_run_ends(both: list[Pipeline]) -> None:
    run = Run(both)
    run.starts.start()
    run.starts.stand_still({TABLE: "too many"})

    with pytest.raises(StandstillError, match="far too many"):
        run.starts.stand_still({TABLE: "too many", JOIN: "far too many"})


def test_a_query_that_fails_is_started_again_alone_after_longer_and_longer_pauses(run: Run) -> None:
    others = [each for each in run.starts.running if each.plan.name != TABLE]
    run.fail(TABLE)

    assert run.look(after_s=0.9) == []
    assert (run.running, run.starts.ended) == ({each.plan.name for each in others}, {TABLE})
    assert run.starts.notes() == [f"{TABLE} does not run: no disk"]
    run.look(after_s=0.1)
    assert TABLE in run.running
    assert run.starts.notes() == []
    run.fail(TABLE)
    run.look(after_s=1.9)
    assert TABLE not in run.running
    run.look(after_s=0.1)
    assert TABLE in run.running
    assert [each for each in run.starts.running if each.plan.name != TABLE] == others
    assert run.metric("query_failures_total", TABLE) == 2


def test_a_query_that_fails_too_often_in_a_row_stays_stopped(both: list[Pipeline]) -> None:
    run = Run(both, new=False)
    for _ in range(3):
        run.look(after_s=MAX_PAUSE_S)
        run.fail(TABLE)
    run.look(after_s=MAX_PAUSE_S)

    assert TABLE not in run.running
    assert JOIN in run.running
    assert run.metric("query_up", TABLE) == 0
    [note] = run.starts.notes()
    assert note.startswith(f"{TABLE} stands still: it failed 3 times in a row, at last: no disk")
    with pytest.raises(StandstillError, match="no disk"):
        run.starts.stand_still({JOIN: "too many"})


def test_a_query_that_ran_for_long_begins_to_count_anew(both: list[Pipeline]) -> None:
    run = Run(both, new=False)
    for _ in range(5):
        run.look(after_s=MAX_PAUSE_S)
        run.now += STEADY_S
        run.fail(TABLE)
    run.look(after_s=MAX_PAUSE_S)

    assert TABLE in run.running


def test_what_hinders_a_start_is_no_failure_and_the_others_start(run: Run) -> None:
    run.fail(TABLE)
    run.absent = {TABLE: "no topic stores"}
    for _ in range(5):
        run.look(after_s=MAX_PAUSE_S)

    assert run.starts.notes() == [f"{TABLE} does not run: no topic stores"]
    run.fail(JOIN)
    run.look(after_s=MAX_PAUSE_S)
    assert JOIN in run.running
    run.absent, run.slots = {}, Slots(1, 0)
    run.look()
    assert run.starts.notes()[0].startswith(f"{TABLE} does not run: {SPARK_IS_SHORT}")
    run.slots = Slots(40, 0)
    run.look()
    assert TABLE in run.running


def test_a_real_time_query_waits_until_its_former_run_has_given_back_its_slots(run: Run) -> None:
    tasks = run.query(TABLE).plan.tasks
    run.fail(TABLE)
    run.slots = Slots(40, 41 - tasks)
    run.look(after_s=MAX_PAUSE_S)
    assert TABLE not in run.running
    run.slots = Slots(40, 40 - tasks)
    run.look()

    assert TABLE in run.running


def test_a_start_that_fails_counts_and_a_checkpoint_of_another_meaning_does_not_start_again(run: Run) -> None:
    run.fail(TABLE)
    run.again_error = QueryFailedError("the checkpoint is no directory")
    run.look(after_s=MAX_PAUSE_S)
    assert run.starts.notes() == [f"{TABLE} does not run: the checkpoint is no directory"]
    run.again_error = PipelineChangedError("stores was made anew")
    run.look(after_s=MAX_PAUSE_S)

    assert run.starts.notes() == [f"{TABLE} stands still: stores was made anew"]


def test_a_full_disk_is_waited_for_and_is_no_failure(run: Run) -> None:
    run.fail(TABLE)
    run.again_error = CheckpointsUnusableError("cannot use /checkpoints: No space left on device")
    for _ in range(5):
        run.look(after_s=MAX_PAUSE_S)

    assert run.starts.notes() == [f"{TABLE} does not run: {run.again_error}"]
    assert run.metric("query_up", TABLE) == 0
    run.again_error = None
    run.look()
    assert TABLE in run.running


def test_mounted_messages_that_cannot_be_read_are_waited_for_and_are_no_failure(run: Run) -> None:
    run.again_error = SettingsError("STATECAST_DESCRIPTORS: orders.proto:3:1: Expected top-level statement")
    run.fail(TABLE)
    for _ in range(5):
        run.look(after_s=MAX_PAUSE_S)

    assert run.starts.notes() == [f"{TABLE} does not run: {run.again_error}"]
    run.again_error = None
    run.look(after_s=OTHERS_PAUSE_S)
    assert run.running == {JOIN, TABLE}


def test_a_disk_with_room_for_notes_alone_is_waited_for(both: list[Pipeline]) -> None:
    run = Run(both, new=False)
    for _ in range(5):
        run.look(after_s=MAX_PAUSE_S)
        run.fail(TABLE, "Job aborted: Task 0 failed 1 times\njava.io.IOException: No space left on device")

    assert run.starts.notes() == [f"{TABLE} does not run: {FULL}"]
    run.look(after_s=OTHERS_PAUSE_S)
    run.fail(TABLE)
    run.look(after_s=1)
    assert TABLE in run.running


def test_a_start_without_room_is_waited_for_and_words_of_a_reason_decide_nothing(run: Run) -> None:
    run.fail(TABLE)
    run.again_error = NoRoomError("the query cannot start")
    for _ in range(5):
        run.look(after_s=MAX_PAUSE_S)
    assert run.starts.notes() == [f"{TABLE} does not run: the query cannot start"]
    run.again_error = QueryFailedError("`note` has no value 'No space left on device'")
    for _ in range(2):
        run.look(after_s=MAX_PAUSE_S)

    [note] = run.starts.notes()
    assert note.startswith(f"{TABLE} stands still: it failed 3 times in a row")


def test_micro_batches_start_again_when_the_clock_goes_back(shipped: PipelineOf) -> None:
    batches = {"mode": "micro-batch", "interval": "1s"}
    run = Run([shipped(JOIN), shipped(TABLE, trigger=batches)], new=False)
    run.look()
    joining, of_day = run.query(JOIN), 1e9
    clock = DayClock(lambda: of_day, lambda: run.now)

    of_day -= 3600
    run.starts.start_again(clock.step_back_s())
    assert run.running == {JOIN}
    assert run.starts.notes() == [f"{TABLE} does not run: the clock went back by 3600 s, and it would wait for as long"]
    run.look(after_s=1)
    run.starts.start_again(clock.step_back_s())
    assert run.running == {JOIN, TABLE}
    assert run.query(JOIN) is joining
    assert run.metric("query_failures_total", TABLE) is None


def test_accepted_dead_letters_start_a_pipeline_again(run: Run) -> None:
    run.starts.hold_to_limits({TABLE: "too many"})
    run.look()
    assert TABLE not in run.running
    run.starts.hold_to_limits({})
    run.look()

    assert TABLE in run.running


def test_two_that_join_each_other_do_not_wait_for_ever(shipped: PipelineOf) -> None:
    store = "statecast.sales.v1.Store"
    joins = [{"topic": JOIN, "message": "statecast.sales.v1.InvoiceWithStore", "key": "store_id", "as": "sale"}]
    select = {"store_id": "store_id", "name": "sale.store.name"}
    table = shipped(TABLE, joins=joins, select=select, sink={"topic": TABLE, "message": store})
    run = Run([shipped(JOIN), table])

    run.starts.start()
    for each in run.starts.running:
        each.started = True
        each.checkpointed = {topic: {0: 10} for topic in each.plan.source_topics}
    run.starts.start()

    assert {JOIN, TABLE} <= run.running
