"""The Java functions in a real Spark session."""

from pathlib import Path

from google.protobuf import json_format
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark program uses

from statecast.descriptors import MessageTypes
from statecast.orders.v1.order_pb2 import OrderChange
from stream_processor.pipeline.fields import Contract
from stream_processor.steps.functions import Functions
from testkit.stream_processor.changes import change, order
from testkit.stream_processor.one_batch import OneBatch

MESSAGE = "statecast.orders.v1.OrderChange"


def test_what_is_decoded_encodes_to_the_same(batch: OneBatch) -> None:
    functions = batch.functions
    sent = change(order(items=("item-1", "item-2")), order(second=1.000001), sequence=7)
    decoded = batch.records(sent).select(functions.decode_change(F.col("value"), MESSAGE).alias("decoded"))

    [line] = decoded.select(functions.encode(F.col("decoded.row"), MESSAGE).alias("value")).collect()

    assert OrderChange.FromString(bytes(line.value)) == sent


def test_a_record_is_decoded_once_however_often_its_row_is_used(batch: OneBatch) -> None:
    decoded = batch.records(b"").withColumn("decoded", batch.functions.decode_change(F.col("value"), MESSAGE))
    used = decoded.where("decoded.problem is null").select("decoded.row.after", "decoded.row.before")

    plan = used._jdf.queryExecution().optimizedPlan().toString()

    assert plan.count("DecodeChange") == 1


SHIPMENT = """
syntax = "proto3"; package acme.v1; import "statecast/change/v1/change.proto";
message Shipment { string name = 1; repeated int64 weights = 2; }
message ShipmentChange {
  statecast.change.v1.Operation operation = 1; statecast.change.v1.Source source = 2;
  Shipment before = 3; Shipment after = 4;
}
"""


def test_a_mounted_message_is_decoded_and_encoded(spark: SparkSession, batch: OneBatch, tmp_path: Path) -> None:
    (tmp_path / "shipment.proto").write_text(SHIPMENT)
    types = MessageTypes.read(tmp_path)
    functions = Functions(spark, Contract(types.descriptor_set))
    shipment = types.message_class("acme.v1.ShipmentChange")
    sent = json_format.ParseDict({"operation": 1, "after": {"name": "s-1", "weights": [2**53 + 1, 2]}}, shipment())
    changed = functions.decode_change(F.col("value"), "acme.v1.ShipmentChange")
    decoded = batch.records(sent).select(changed.alias("decoded"))

    row, encoded = F.col("decoded.row"), functions.encode(F.col("decoded.row"), "acme.v1.ShipmentChange")
    [line] = decoded.select(row.after.alias("after"), encoded.alias("value")).collect()

    assert (line.after.name, line.after.weights) == ("s-1", [2**53 + 1, 2])
    assert shipment.FromString(bytes(line.value)) == sent


def test_the_partition_is_kafkas(batch: OneBatch) -> None:
    keys = [(b"abc", b""), (b"foobar", b""), (b"21", b"")]

    partition = batch.functions.kafka_partition(F.col("key"), 4).alias("n")

    assert [line.n for line in batch.records(*keys).orderBy("offset").select(partition).collect()] == [3, 2, 0]
