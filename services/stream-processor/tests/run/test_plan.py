"""Which queries pipelines become, and the task slots that they need."""

from contextlib import nullcontext
from dataclasses import replace
from datetime import timedelta

import pytest

from statecast_domains.errors import PipelineFileError
from stream_processor.errors import TooFewSlotsError
from stream_processor.pipeline.pipeline import Pipeline
from stream_processor.run.plan import (
    access_of,
    begun,
    check_together,
    choose_master,
    plan,
    slots_needed,
    topics_of,
)
from testkit.stream_processor.changes import POSITION_CHANGES
from testkit.stream_processor.micro_batches import PipelineOf

PARTITIONS = {"orders": 4, "orders-by-key": 3, "orders-by-item": 5, "orders.dead-letter": 1}
BY_NUMBER = {"by": "invoice_number", "within": "1h"}


@pytest.fixture
def both(shipped: PipelineOf) -> list[Pipeline]:
    return [shipped("orders-by-key"), shipped("orders-by-item")]


def test_every_topic_is_wanted(both: list[Pipeline]) -> None:
    assert topics_of(both) == set(PARTITIONS)


def test_each_pipeline_is_a_query(both: list[Pipeline]) -> None:
    plans = plan(both, PARTITIONS)

    assert [(each.name, each.sink_topic, each.tasks) for each in plans] == [
        ("orders-by-key", "orders-by-key", 2 + 2),
        ("orders-by-item", "orders-by-item", 1),
    ]
    assert [each.pipeline for each in plans] == both


@pytest.mark.parametrize(("parallelism", "tasks"), [(None, 1), (1, 1), (3, 3 + 3), (8, 4 + 8)])
def test_a_file_says_how_many_tasks_read_and_keep_state(
    shipped: PipelineOf, parallelism: int | None, tasks: int
) -> None:
    [planned] = plan([shipped("orders-by-key", parallelism=parallelism)], PARTITIONS)

    assert (planned.tasks, planned.source_partitions) == (tasks, 4)


def test_an_aggregate_shuffles_twice_and_a_route_never(shipped: PipelineOf) -> None:
    aggregate, route = shipped("us-share-holders", source=POSITION_CHANGES), shipped("home-delivery")
    topics = topics_of([aggregate, route])

    plans = plan([aggregate, route], dict.fromkeys(topics, 4))

    assert [(each.name, each.tasks) for each in plans] == [("us-share-holders", 2 + 2 * 2), ("home-delivery", 1)]


def test_a_query_begins_where_its_file_says(both: list[Pipeline]) -> None:
    definition = both[1].definition
    source = definition.source.model_copy(update={"starting_offsets": "latest"})
    late = replace(both[1], definition=definition.model_copy(update={"source": source}))
    asked = list[tuple[str, str]]()

    def starts(topic: str, starting_offsets: str) -> dict[int, int] | None:
        asked.append((topic, starting_offsets))
        return {0: 7} if starting_offsets == "latest" else None

    plans = begun(plan([both[0], late], PARTITIONS), starts)

    assert sorted(asked) == [("orders", "earliest"), ("orders", "latest")]
    assert {each.name: each.starts for each in plans} == {
        "orders-by-key": None,
        "orders-by-item": {0: 7},
    }


def test_tables_are_wanted_too(shipped: PipelineOf) -> None:
    assert "stores-by-key" in topics_of([shipped("invoices-with-store")])


def test_dead_letters_are_written_and_read_again(both: list[Pipeline]) -> None:
    assert access_of(both)["orders.dead-letter"] == {"Read", "Write", "DescribeConfigs"}


def test_the_checkpoint_interval_can_be_overridden(both: list[Pipeline]) -> None:
    plans = plan(both, PARTITIONS, timedelta(seconds=9))

    assert {each.trigger.checkpoint for each in plans} == {timedelta(seconds=9)}


def test_checkpoints_of_queries_do_not_fall_together(both: list[Pipeline]) -> None:
    minute, least = plan(both, PARTITIONS), plan(both, PARTITIONS, timedelta(seconds=5))

    first = [each.first_checkpoint for each in minute]
    assert len(set(first)) == len(first)
    assert all(timedelta(seconds=5) <= each < timedelta(seconds=60) for each in first)
    assert {each.first_checkpoint for each in least} == {timedelta(seconds=5)}


def test_the_shipped_pipelines_run_together(both: list[Pipeline]) -> None:
    check_together(both)


@pytest.mark.parametrize(
    ("replaced", "problem"),
    [
        ({"name": "orders-by-key"}, "name: orders-by-key is also the name of orders-by-key.yaml"),
        ({"sink": {"topic": "orders-by-key"}}, "sink.topic: orders-by-key is also written by orders-by-key.yaml"),
        ({"sink": {"topic": "orders"}}, "sink.topic: is a source topic"),
        ({"sink": {"topic": "orders.dead-letter"}}, "sink.topic: is the dead-letter topic of orders-by-"),
    ],
)
def test_pipelines_that_disturb_each_other_are_refused(
    shipped: PipelineOf, replaced: dict[str, object], problem: str
) -> None:
    with pytest.raises(PipelineFileError, match=f"orders-by-item.yaml: {problem}"):
        check_together([shipped("orders-by-key"), shipped("orders-by-item", **replaced)])


def chained(shipped: PipelineOf, name: str, source: str, sink: str, **more: str) -> Pipeline:
    """Returns a pipeline of orders from one keyed topic to another."""
    table = {"topic": source, "message": "statecast.orders.v1.Order", "format": "table", **more}
    return shipped("orders-by-key", name=name, source=table, sink={"topic": sink})


STORES_OF = {"topic": "stores", "message": "statecast.sales.v1.Store", "format": "table", "values": "json"}


@pytest.mark.parametrize(
    ("replaced", "problem"),
    [
        ({"keep": {"members": {"key": "store_id", "sort": "city"}}}, "topic: .* no single record per group"),
        ({"keep": "route", "source": STORES_OF}, "topic: .* no single record per group"),
        ({"source": {**STORES_OF, "message": "statecast.sales.v1.StoreSales"}}, "message: is .*Store, but"),
    ],
)
def test_a_topic_without_the_rows_of_a_join_is_refused(
    shipped: PipelineOf, replaced: dict[str, object], problem: str
) -> None:
    joining = shipped("invoices-with-store")
    check_together([shipped("stores-by-key"), joining])

    with pytest.raises(PipelineFileError, match=rf"invoices-with-store.yaml: joins\[0\].{problem}"):
        check_together([shipped("stores-by-key", **replaced), joining])


def test_what_a_pipeline_writes_may_be_anothers_table(shipped: PipelineOf) -> None:
    chain = [shipped("orders-by-key"), chained(shipped, "again", "orders-by-key", "again")]

    check_together(chain)

    assert "orders-by-key.dead-letter" in topics_of(chain)
    assert access_of(chain)["orders-by-key"] == {"Read", "Write", "DescribeConfigs"}
    assert [each.counts for each in plan(chain, dict.fromkeys(topics_of(chain), 1))] == [False, False]
    by_offset = chained(shipped, "again", "orders-by-key", "again", values="json")
    assert plan([by_offset], dict.fromkeys(topics_of([by_offset]), 1))[0].counts


def test_a_table_join_reads_two_topics_in_one_query(shipped: PipelineOf) -> None:
    join = shipped("stores-with-sales")
    partitions = {"stores-by-key": 2, "sales-by-store": 1, "stores-with-sales": 4}
    topics = topics_of([join])

    plans = plan([join], {**dict.fromkeys(topics, 1), **partitions})

    assert topics == {*partitions, "stores-by-key.dead-letter", "sales-by-store.dead-letter"}
    assert [(each.name, each.source_topics, each.tasks, each.counts) for each in plans] == [
        ("stores-with-sales", ("stores-by-key", "sales-by-store"), 1 + 1 + 1, True),
    ]
    access = access_of([join])
    assert [access[each] for each in ("stores-by-key", "sales-by-store")] == [{"Read", "DescribeConfigs"}] * 2
    assert access["sales-by-store.dead-letter"] == {"Read", "Write", "DescribeConfigs"}


def test_both_sides_of_a_join_must_be_what_their_writers_write(shipped: PipelineOf) -> None:
    sales = {"topic": "sales-by-store", "message": "statecast.sales.v1.StoreSales", "as": "sales"}
    chain = [shipped("stores-by-key"), shipped("sales-by-store")]
    check_together([*chain, shipped("stores-with-sales")])

    for wrong, problem in (
        ({**sales, "values": "json"}, r"table_join\.values: is json, but sales-by-store writes state-records there"),
        ({**sales, "message": "statecast.sales.v1.Store"}, r"table_join\.message: is .*Store, but sales-by-store wri"),
        ({**sales, "topic": "stores"}, r"table_join\.message: is .* of stores, by another file"),
    ):
        with pytest.raises(PipelineFileError, match=problem):
            check_together([*chain, shipped("stores-with-sales", table_join=wrong, select={"store": "row"})])


def test_a_cycle_through_a_joined_table_is_named(shipped: PipelineOf) -> None:
    sink = {"topic": "sales-by-store", "message": "statecast.sales.v1.StoreSales"}
    table = {"topic": "stores-with-sales", "message": "statecast.sales.v1.StoreWithSales", "format": "table"}
    select = {"store_id": "store.store_id"}
    back = shipped("stores-by-key", name="back", source=table, group_by="store.store_id", select=select, sink=sink)

    with pytest.raises(PipelineFileError, match="own sink: back → stores-with-sales → back"):
        check_together([shipped("stores-with-sales"), back])


def test_a_cycle_is_named(shipped: PipelineOf) -> None:
    names = [("one", "c", "a"), ("two", "a", "b"), ("three", "b", "c")]

    with pytest.raises(
        PipelineFileError, match=r"source\.topic: is derived from its own sink: two → three → one → two"
    ):
        check_together([chained(shipped, *each) for each in names])


@pytest.mark.parametrize(
    ("writer", "more", "problem"),
    [
        ("orders-by-key", {"values": "json"}, "source.values: is json, but orders-by-key writes state-records there"),
        ("stores-by-key", {}, "source.message: is .*Order, but stores-by-key writes statecast.sales.v1.Store there"),
        ("home-delivery", {}, "source.topic: is a plain topic, which home-delivery writes: it holds no table"),
    ],
)
def test_a_table_that_its_writer_does_not_write_is_refused(
    shipped: PipelineOf, writer: str, more: dict[str, str], problem: str
) -> None:
    first = shipped(writer)

    with pytest.raises(PipelineFileError, match=problem):
        check_together([first, chained(shipped, "again", first.sink_topic, "again", **more)])


LETTER = {"message": "statecast.sales.v1.HomeDelivery", "format": "events", "deduplicate": BY_NUMBER}


@pytest.mark.parametrize(
    ("writer", "more", "problem"),
    [
        ("home-delivery", {"deduplicate": None}, "source.deduplicate: is missing: after a crash home-delivery writes"),
        ("home-delivery", {"values": "json"}, "source.values: is json, but home-delivery writes protobuf there"),
        ("stores-by-key", {}, "source.format: is events, but stores-by-key keeps rows there: read them by format: tab"),
        ("home-delivery", {}, ""),
    ],
)
def test_records_of_a_route_are_events_that_may_come_twice(
    shipped: PipelineOf, writer: str, more: dict[str, object], problem: str
) -> None:
    first = shipped(writer)
    reader = shipped(
        "home-delivery",
        name="again",
        source={"topic": first.sink_topic, **LETTER, **more},
        where=None,
        select={"invoice_number": "invoice_number"},
        sink={"topic": "again", "message": "statecast.sales.v1.HomeDelivery"},
    )

    with pytest.raises(PipelineFileError, match=problem) if problem else nullcontext():
        check_together([first, reader])


def test_what_an_event_stood_for_is_not_asked_on_the_way(shipped: PipelineOf) -> None:
    events = {"topic": "orders", "message": "statecast.sales.v1.Invoice", "format": "events"}
    same = {**events, "deduplicate": BY_NUMBER}
    names = ("home-delivery", "invoices-by-store", "rewards-by-customer")

    assert [shipped(name, source=events).shuffles for name in names] == [0, 1, 1]
    assert [shipped(name, source=same).shuffles for name in names] == [1, 2, 2]


def test_realtime_queries_hold_all_their_tasks(both: list[Pipeline]) -> None:
    assert slots_needed(plan(both, PARTITIONS)) == 4 + 1


def test_micro_batch_queries_take_no_slot_from_realtime_ones(shipped: PipelineOf) -> None:
    realtime, batched = (shipped("orders-by-key", trigger={"mode": mode}) for mode in ("realtime", "micro-batch"))

    assert slots_needed([plan([realtime], PARTITIONS)[0], plan([batched], PARTITIONS)[0]]) == 4 + 4


def test_micro_batch_queries_alone_share_a_few(shipped: PipelineOf) -> None:
    batched = shipped("orders-by-key", trigger={"mode": "micro-batch"})

    assert slots_needed(plan([batched], PARTITIONS)) == 2


def test_without_a_master_it_is_a_local_one_of_the_right_size() -> None:
    assert choose_master("", 28, cores=2) == "local[28]"


@pytest.mark.parametrize("master", ["local[28]", "local[40,3]", "spark://master:7077", "k8s://https://host"])
def test_a_master_that_can_be_large_enough_is_taken(master: str) -> None:
    assert choose_master(master, 28, cores=2) == master


@pytest.mark.parametrize(("master", "offered"), [("local[8]", 8), ("local", 1), ("local[*]", 2)])
def test_a_local_master_that_is_too_small_is_refused(master: str, offered: int) -> None:
    with pytest.raises(TooFewSlotsError, match=f"gives {offered} task slots, the pipelines need 28"):
        choose_master(master, 28, cores=2)
