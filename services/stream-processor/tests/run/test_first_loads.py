"""Which queries wait for which tables: those that come later, are refused or are joined no more."""

import pytest
from prometheus_client import CollectorRegistry

from stream_processor.errors import TopicsMissingError
from stream_processor.metrics import Metrics
from stream_processor.pipeline.fields import Contract
from stream_processor.pipeline.pipeline import Pipeline
from stream_processor.run.admission import RefusedFiles, sound_pipelines
from stream_processor.run.first_loads import FirstLoads
from stream_processor.run.plan import QueryPlan, plan, topics_of
from testkit.repository_files import DOMAINS
from testkit.stream_processor.micro_batches import PipelineOf

JOIN, TABLE = "invoices-with-store", "stores-by-key"


def planned(*pipelines: Pipeline) -> list[QueryPlan]:
    return plan(pipelines, dict.fromkeys(topics_of(pipelines), 1))


@pytest.fixture
def refused() -> RefusedFiles:
    return RefusedFiles(Metrics(CollectorRegistry()))


@pytest.fixture
def loads(refused: RefusedFiles) -> FirstLoads:
    """Those of a process without queries. None has a checkpoint."""
    return FirstLoads([], lambda _: True, lambda _: {}, refused.tables)


def add(loads: FirstLoads, *pipelines: Pipeline) -> None:
    loads.add(planned(*pipelines), lambda _: True)


def test_a_new_query_waits_for_a_table_that_is_added_after_it(loads: FirstLoads, shipped: PipelineOf) -> None:
    add(loads, shipped(JOIN))
    assert loads.awaited(JOIN, []) == []
    add(loads, shipped(TABLE))

    assert loads.awaited(JOIN, []) == [TABLE]


def test_a_query_that_no_longer_joins_its_table_does_not_wait_for_it(loads: FirstLoads, shipped: PipelineOf) -> None:
    add(loads, shipped(JOIN), shipped(TABLE))
    add(loads, shipped(JOIN, joins=[], select={"invoice": "row"}))

    assert loads.awaited(JOIN, []) == []


def test_a_table_without_its_topics_at_the_start_is_awaited_while_its_file_is_refused(
    loads: FirstLoads, contract: Contract, refused: RefusedFiles
) -> None:
    files = [DOMAINS / "invoices" / f"{name}.yaml" for name in (JOIN, TABLE)]
    joining, _ = sound_pipelines(files, contract, refused)
    refused.refuse(files[1], TopicsMissingError("no topic stores"))
    add(loads, joining)

    assert loads.awaited(JOIN, []) == [TABLE]
    refused.keep(lambda _: False)
    assert loads.awaited(JOIN, []) == []
