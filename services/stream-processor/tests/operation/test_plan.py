"""Which queries pipelines become, and the task slots that they need."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from statecast_domains.errors import PipelineFileError
from stream_processor.definition.pipeline import Pipeline
from stream_processor.errors import TooFewSlotsError
from stream_processor.operation.plan import access_of, check_together, choose_master, plan, slots_needed, topics_of

PARTITIONS = {"orders": 4, "orders-by-key": 3, "orders-by-item": 5, "orders.dead-letter": 1}


@pytest.fixture
def both(shipped: Callable[..., Pipeline]) -> list[Pipeline]:
    return [shipped("orders-by-key"), shipped("orders-by-item")]


def test_every_topic_is_wanted(both: list[Pipeline]) -> None:
    assert topics_of(both) == set(PARTITIONS)


def test_each_pipeline_is_a_query_and_each_source_one_more(both: list[Pipeline]) -> None:
    plans = plan(both, PARTITIONS)

    assert [(each.name, each.sink_topic, each.tasks) for each in plans] == [
        ("orders-by-key", "orders-by-key", 4 + 3),
        ("orders-by-item", "orders-by-item", 4 + 5),
        ("orders.dead-letter", "orders.dead-letter", 4),
    ]
    assert plans[-1].pipelines == tuple(both)


def test_an_aggregate_shuffles_twice_and_a_route_never(shipped: Callable[..., Pipeline]) -> None:
    aggregate, route = shipped("us-share-holders"), shipped("home-delivery")
    topics = topics_of([aggregate, route])

    plans = plan([aggregate, route], dict.fromkeys(topics, 4))

    assert [(each.name, each.tasks, each.sets_aside) for each in plans[:3]] == [
        ("us-share-holders", 4 + 2 * 4, False),
        ("home-delivery", 4, False),
        ("open-positions.dead-letter", 4, True),
    ]


def test_tables_are_wanted_too(shipped: Callable[..., Pipeline]) -> None:
    assert "stores-by-key" in topics_of([shipped("invoices-with-store")])


def test_dead_letters_are_written_and_read_again(both: list[Pipeline]) -> None:
    assert access_of(both)["orders.dead-letter"] == {"Read", "Write", "DescribeConfigs"}


def test_the_checkpoint_interval_can_be_overridden(both: list[Pipeline]) -> None:
    plans = plan(both, PARTITIONS, timedelta(seconds=9))

    assert {each.trigger.checkpoint for each in plans} == {timedelta(seconds=9)}


def test_the_shipped_pipelines_run_together(both: list[Pipeline]) -> None:
    check_together(both)


@pytest.mark.parametrize(
    ("replaced", "problem"),
    [
        ({"name": "orders-by-key"}, "name: orders-by-key is also the name of orders-by-key.yaml"),
        ({"sink": {"topic": "orders-by-key"}}, "sink.topic: orders-by-key is also written by orders-by-key.yaml"),
        ({"sink": {"topic": "orders"}}, "sink.topic: is a source topic"),
    ],
)
def test_pipelines_that_disturb_each_other_are_refused(
    shipped: Callable[..., Pipeline], replaced: dict[str, object], problem: str
) -> None:
    with pytest.raises(PipelineFileError, match=f"orders-by-item.yaml: {problem}"):
        check_together([shipped("orders-by-key"), shipped("orders-by-item", **replaced)])


def test_realtime_queries_hold_all_their_tasks(both: list[Pipeline]) -> None:
    assert slots_needed(plan(both, PARTITIONS)) == 7 + 9 + 4


def test_micro_batch_queries_share_a_few(shipped: Callable[..., Pipeline]) -> None:
    realtime, batched = (shipped("orders-by-key", trigger={"mode": mode}) for mode in ("realtime", "micro-batch"))

    assert slots_needed([plan([realtime], PARTITIONS)[0], plan([batched], PARTITIONS)[0]]) == 7 + 2
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
