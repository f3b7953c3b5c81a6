"""The limit of dead letters."""

from collections.abc import Callable
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from stream_processor.definition.pipeline import Pipeline
from stream_processor.errors import DeadLetterLimitError
from stream_processor.metrics import Metrics
from stream_processor.operation.dead_letter_limit import DeadLetterLimit
from stream_processor.operation.local_checkpoints import LocalCheckpoints
from stream_processor.testing.fakes import FakeTopics

TOPIC = "orders.dead-letter"


@pytest.fixture
def topics() -> FakeTopics:
    return FakeTopics({TOPIC: 100})


@pytest.fixture
def begin(tmp_path: Path, topics: FakeTopics, shipped: Callable[..., Pipeline]) -> Callable[[], DeadLetterLimit]:
    """Starts the process again, so to say."""
    strict = shipped("orders-by-item", dead_letters={"limit": 5})
    return lambda: DeadLetterLimit("orders", [shipped("orders-by-key"), strict], topics, LocalCheckpoints(tmp_path))


@pytest.fixture
def metrics() -> Metrics:
    return Metrics(CollectorRegistry())


def test_those_from_before_the_first_start_do_not_count(begin: Callable[[], DeadLetterLimit], metrics: Metrics) -> None:
    begin().check(metrics)

    assert metrics.registry.get_sample_value("stream_processor_dead_letters", {"topic": TOPIC}) == 0


def test_the_lowest_limit_holds_over_a_restart(
    begin: Callable[[], DeadLetterLimit], topics: FakeTopics, metrics: Metrics
) -> None:
    begin().check(metrics)
    topics.ends[TOPIC] += 5
    begin().check(metrics)
    topics.ends[TOPIC] += 1

    with pytest.raises(DeadLetterLimitError, match=r"6 dead letters on orders\.dead-letter, the limit is 5"):
        begin().check(metrics)


def test_accepted_ones_no_longer_count(
    begin: Callable[[], DeadLetterLimit], topics: FakeTopics, metrics: Metrics
) -> None:
    begin().check(metrics)
    topics.ends[TOPIC] += 6
    begin().accept()

    begin().check(metrics)


def test_a_topic_that_was_made_anew_counts_from_its_beginning(
    begin: Callable[[], DeadLetterLimit], topics: FakeTopics, metrics: Metrics
) -> None:
    begin().check(metrics)
    topics.ends[TOPIC] = 6

    with pytest.raises(DeadLetterLimitError, match="6 dead letters"):
        begin().check(metrics)
