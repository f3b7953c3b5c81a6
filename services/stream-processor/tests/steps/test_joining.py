"""Joining with a keyed topic on the real broker: the table's rows are there within moments."""

from collections.abc import Callable, Iterator
from typing import Any, cast

import pytest
from confluent_kafka import Producer
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark program uses

from statecast.sales.v1.invoice_with_store_pb2 import InvoiceWithStore
from statecast.sales.v1.store_pb2 import Store
from statecast.state.v1.state_pb2 import StateRecord
from stream_processor import shapes
from stream_processor.pipeline.fields import Contract
from stream_processor.steps.functions import Functions
from stream_processor.steps.projection import join, project
from testkit.pytest_plugin import CreateTopic
from testkit.stream_processor.changes import INVOICE_CHANGES, invoice, invoice_change
from testkit.stream_processor.micro_batches import PipelineOf
from testkit.stream_processor.one_batch import OneBatch
from testkit.stream_processor.process import wait_until

Joined = Callable[[], Store | None]
JoinedBy = Callable[[Contract], Joined]


class Table:
    """A keyed topic of stores, as a pipeline would write it."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self.topic = topic
        self._producer = Producer({"bootstrap.servers": bootstrap})

    def put(self, sequence: int, name: str) -> None:
        payload = Store(store_id="store-1", name=name).SerializeToString()
        self._write(StateRecord(epoch=1, sequence=sequence, payload=payload).SerializeToString(), None)

    def delete(self, sequence: int) -> None:
        self._write(None, {"statecast-state-record": StateRecord(epoch=1, sequence=sequence).SerializeToString()})

    def _write(self, value: bytes | None, headers: dict[str, str | bytes | None] | None) -> None:
        self._producer.produce(self.topic, key=b"store-1", value=value, headers=headers or {})
        assert self._producer.flush(30) == 0


@pytest.fixture
def table(kafka: str, create_topic: CreateTopic) -> Table:
    return Table(kafka, create_topic("stores-by-key", partitions=4))


@pytest.fixture
def tables(spark: SparkSession) -> Iterator[Any]:
    """The tables of Spark's JVM, which are closed after the test."""
    tables = cast(Any, spark._jvm).io.statecast.spark.tables.GlobalTables
    yield tables
    tables.closeAll()


@pytest.fixture
def joined_by(
    spark: SparkSession, kafka: str, table: Table, tables: Any, shipped: PipelineOf, batch: OneBatch
) -> JoinedBy:
    """Gives the store that an invoice of store-1 is joined with now, by a query of a contract."""
    definition = {"topic": table.topic, "message": "statecast.sales.v1.Store", "key": "store_id", "as": "store"}
    file = shipped("invoices-with-store", source=INVOICE_CHANGES, joins=[definition])

    def by(contract: Contract) -> Joined:
        pipeline = shapes.check(file.file, file.definition, contract)
        functions = Functions(spark, contract, {"bootstrap.servers": kafka})
        change = functions.decode_change(F.col("value"), pipeline.change.full_name).getField("row")
        changes = batch.records(invoice_change(None, invoice())).select(
            change.getField("after").alias("after"), F.lit(None).cast("binary").alias("payload")
        )
        written = project(join(changes, pipeline, functions), pipeline, functions)

        def now() -> Store | None:
            [line] = written.collect()
            row = InvoiceWithStore.FromString(bytes(line.payload))
            assert row.invoice == invoice()
            return row.store if row.HasField("store") else None

        return now

    return by


@pytest.fixture
def joined(joined_by: JoinedBy, contract: Contract) -> Joined:
    """The store that an invoice of store-1 is joined with now."""
    return joined_by(contract)


def test_a_row_is_joined_with_what_the_table_holds_at_the_moment(table: Table, joined: Joined) -> None:
    table.put(1, "old")
    table.put(2, "new")

    assert joined() == Store(store_id="store-1", name="new")

    table.put(3, "newer")
    wait_until(lambda: joined() == Store(store_id="store-1", name="newer"), lambda: str(joined()))

    table.delete(4)
    wait_until(lambda: joined() is None, lambda: str(joined()))


def test_a_row_without_a_match_is_joined_with_nothing(joined: Joined) -> None:
    assert joined() is None


def test_a_query_of_a_later_contract_gets_rows_of_its_own_fields(
    table: Table, joined_by: JoinedBy, contract: Contract, extended: Contract
) -> None:
    before, after = joined_by(contract), joined_by(extended)
    table.put(1, "new")

    assert before() == after() == Store(store_id="store-1", name="new")


def test_all_tasks_share_one_table_until_it_is_closed(
    spark: SparkSession, table: Table, joined: Joined, tables: Any
) -> None:
    def followers() -> int:
        threads = cast(Any, spark._jvm).java.lang.Thread.getAllStackTraces().keySet()
        return [thread.getName() for thread in threads].count(f"table-{table.topic}")

    joined()
    joined()

    assert followers() == 1

    tables.closeAll()
    wait_until(lambda: followers() == 0, lambda: f"{followers()} threads follow {table.topic}")
