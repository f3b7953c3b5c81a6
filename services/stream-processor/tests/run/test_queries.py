"""Spark's plan of a pipeline, without Kafka."""

import pytest
from pyspark.sql import SparkSession

from statecast_domains.errors import PipelineFileError
from stream_processor.pipeline.fields import Contract
from stream_processor.run.queries import physical_plan
from testkit.stream_processor.micro_batches import PipelineOf


@pytest.mark.parametrize(
    ("name", "shuffles"),
    [("invoices-with-store", 1), ("stores-with-sales", 1), ("us-share-holders", 2), ("masked-lines", 0)],
)
def test_each_shape_is_planned_with_its_shuffles(
    shipped: PipelineOf, spark: SparkSession, contract: Contract, name: str, shuffles: int
) -> None:
    plan = physical_plan(shipped(name, parallelism=2), spark, contract)

    assert plan.count("Exchange hashpartitioning(") == shuffles
    # The second is an aggregation's, which keeps the newest of events.
    assert any(state in plan for state in ("TransformWithState", "StateStoreSave")) is (shuffles > 0)
    assert "StreamingRelation " in plan


def test_the_contract_is_not_spelled_out(shipped: PipelineOf, spark: SparkSession, contract: Contract) -> None:
    assert len(physical_plan(shipped("home-delivery"), spark, contract)) < 20_000


def test_what_only_spark_finds_wrong_is_told(shipped: PipelineOf, spark: SparkSession, contract: Contract) -> None:
    wrong = shipped("orders-by-key", where="length(items) > 1")

    with pytest.raises(PipelineFileError, match=r"orders-by-key\.yaml: where: .*length"):
        physical_plan(wrong, spark, contract)
