"""Which queries wait for the tables that they join."""

from collections.abc import Callable
from typing import Any, cast

import pytest
from prometheus_client import CollectorRegistry
from py4j.protocol import Py4JError

from stream_processor.definition.pipeline import Pipeline
from stream_processor.errors import StandstillError
from stream_processor.metrics import Metrics
from stream_processor.operation.monitoring import WatchedQuery
from stream_processor.operation.plan import plan, topics_of
from stream_processor.operation.starts import FirstLoads, Starts, without
from testkit.stream_processor.fakes import FakeQuery, FakeTasks

JOIN = "invoices-with-store"
TABLE = "stores-by-key"
REASON = f"{JOIN} waits for the first checkpoint of {TABLE}, which it joins"
STANDS_STILL = f"{JOIN} waits for {TABLE}, which stands still"


class Stubborn(FakeQuery):
    """A query that does not stop in time."""

    def stop(self) -> None:
        raise Py4JError("TimeoutException")


class Prepared:
    """A query that starts as a fake."""

    def start(self) -> Any:
        return Stubborn([])


class Run:
    """Queries of both pipelines, the joining one first; `ends` is where the table's source ended.

    Those in `too_many` were beyond their limits at the start.
    """

    def __init__(
        self, pipelines: list[Pipeline], new: bool = True, ends: dict[int, int] | None = None, *too_many: str
    ) -> None:
        plans = plan(pipelines, dict.fromkeys(topics_of(pipelines), 1))
        loads = FirstLoads(plans, lambda _: new, lambda _: ends or {0: 10})
        metrics = Metrics(CollectorRegistry())
        left = without(plans, dict.fromkeys(too_many, "too many"), metrics)
        prepared = [(each, cast(Any, Prepared())) for each in left]
        self.starts = Starts(prepared, loads, FakeTasks(1).running, metrics)

    @property
    def running(self) -> set[str]:
        return {each.plan.name for each in self.starts.running}

    def query(self, name: str) -> WatchedQuery:
        return next(each for each in self.starts.running if each.plan.name == name)


@pytest.fixture
def both(shipped: Callable[..., Pipeline]) -> list[Pipeline]:
    return [shipped(JOIN), shipped(TABLE)]


def test_a_new_query_starts_once_a_checkpoint_holds_what_its_table_had_to_read(both: list[Pipeline]) -> None:
    run = Run(both)

    assert run.starts.start() == [REASON]
    assert run.starts.start() == [REASON]
    assert run.running == {TABLE, "invoices.dead-letter", "stores.dead-letter"}
    run.query(TABLE).checkpointed = {"stores": {0: 9}}
    assert run.starts.start() == [REASON]
    run.query(TABLE).checkpointed = {"stores": {0: 10}}
    assert run.starts.start() == []
    assert JOIN in run.running
    assert run.starts.held == []


def test_a_query_with_a_checkpoint_waits_for_nothing(both: list[Pipeline]) -> None:
    assert Run(both, new=False).starts.start() == []


def test_a_table_that_this_process_does_not_write_is_not_awaited(both: list[Pipeline]) -> None:
    assert Run(both[:1]).starts.start() == []


def test_a_table_without_changes_is_not_awaited_for_long(both: list[Pipeline]) -> None:
    run = Run(both, ends={0: 0})

    assert run.starts.start() == [REASON]
    assert run.starts.start() == []


def test_a_new_query_stays_held_while_its_table_stands_still(both: list[Pipeline]) -> None:
    run = Run(both)
    run.starts.start()
    run.starts.stand_still({TABLE: "too many"})

    assert run.starts.start() == [STANDS_STILL]
    assert run.running == {"invoices.dead-letter", "stores.dead-letter"}


def test_a_table_that_stands_still_from_the_start_is_awaited_too(both: list[Pipeline]) -> None:
    run = Run(both, True, None, TABLE)

    assert run.starts.start() == [STANDS_STILL]
    assert JOIN not in run.running
    assert Run(both, False, None, TABLE).starts.start() == []


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


def test_two_that_join_each_other_do_not_wait_for_ever(shipped: Callable[..., Pipeline]) -> None:
    store = "statecast.sales.v1.Store"
    joins = [{"topic": JOIN, "message": "statecast.sales.v1.InvoiceWithStore", "key": "store_id", "as": "sale"}]
    select = {"store_id": "store_id", "name": "sale.store.name"}
    table = shipped(TABLE, joins=joins, select=select, sink={"topic": TABLE, "message": store})
    run = Run([shipped(JOIN), table])

    run.starts.start()
    for each in run.starts.running:
        each.checkpointed = {topic: {0: 10} for topic in each.plan.source_topics}
    run.starts.start()

    assert {JOIN, TABLE} <= run.running
