"""The Java functions of jvm/ as column functions of one Spark session."""

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark program uses
from pyspark.sql.types import BinaryType, StringType, StructField, StructType

from stream_processor.definition.contract import Contract
from stream_processor.spark_internals import java_column
from stream_processor.steps import row_schema


class Functions:
    """Decodes, encodes, partitions, and looks up at `bootstrap`; signatures mirror from_protobuf and to_protobuf."""

    def __init__(self, spark: SparkSession, contract: Contract, bootstrap: str = "") -> None:
        self._spark = spark
        self._contract = contract
        self._bootstrap = bootstrap
        self._descriptors = F.lit(bytearray(contract.descriptor_set))

    def decode_change(self, value: Column, message: str) -> Column:
        """struct(row, payload, problem) of a change's bytes; `payload` is the row as received. No value raises."""
        columns = [value, F.lit(message), self._descriptors]
        return java_column(self._spark, "decodeChange", [self._decoded(message)], columns)

    def row_from_texts(self, texts: Column, declared: Column, message: str) -> Column:
        """struct(row, payload, problem) of a table's row from Debezium (RowFromTexts.java); null for null texts."""
        columns = [texts, declared, F.lit(message), self._descriptors]
        return java_column(self._spark, "rowFromTexts", [self._decoded(message)], columns)

    def encode(self, row: Column, message: str) -> Column:
        """The bytes of a row that has the message's fields in their order; null for a null row."""
        return java_column(self._spark, "encode", [], [row, F.lit(message), self._descriptors])

    def kafka_partition(self, key: Column, partitions: int) -> Column:
        """The partition that Kafka's own producer gives to this key: toPositive(murmur2(key)) % partitions."""
        return java_column(self._spark, "kafkaPartition", [], [key, F.lit(partitions)])

    def lookup(self, key: Column, topic: str, message: str) -> Column:
        """The row of `message` that a keyed topic holds under the text `key`; null where it holds none.

        The topic is followed as a table in the JVM of each executor; the first lookup waits until it was read.
        """
        row = row_schema.of(self._contract.message(message))
        return java_column(self._spark, "lookup", [row, self._bootstrap, topic, message], [key, self._descriptors])

    def _decoded(self, message: str) -> StructType:
        row = row_schema.of(self._contract.message(message))
        return StructType(
            [StructField("row", row), StructField("payload", BinaryType()), StructField("problem", StringType())]
        )
