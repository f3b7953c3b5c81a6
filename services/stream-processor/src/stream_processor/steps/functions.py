"""The Java functions of jvm/ as column functions of one Spark session."""

from typing import Any, cast

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark program uses
from pyspark.sql.types import BinaryType, StringType, StructField, StructType

from stream_processor.definition.contract import Contract
from stream_processor.steps import row_schema


class Functions:
    """Decodes, encodes, partitions and looks up; the signatures mirror from_protobuf and to_protobuf.

    `bootstrap` is where `lookup` finds Kafka.
    """

    def __init__(self, spark: SparkSession, contract: Contract, bootstrap: str = "") -> None:
        self._spark = spark
        self._contract = contract
        self._bootstrap = bootstrap
        self._descriptors = F.lit(bytearray(contract.descriptor_set))
        self._jvm = cast(Any, spark._jvm)
        self._java = self._jvm.io.statecast.spark.ColumnFunctions

    def decode_change(self, value: Column, message: str) -> Column:
        """struct(row, payload, problem) of a change's bytes: row or problem is null, and no value raises.

        `payload` is the encoded row after the change with all that was received.
        """
        function = self._java.decodeChange(self._row_with_payload(message))
        return self._call(function, value, F.lit(message), self._descriptors)

    def row_from_texts(self, texts: Column, declared: Column, message: str) -> Column:
        """struct(row, payload, problem) of a table's row from Debezium: see RowFromTexts.java; null for null texts."""
        function = self._java.rowFromTexts(self._row_with_payload(message))
        return self._call(function, texts, declared, F.lit(message), self._descriptors)

    def encode(self, row: Column, message: str) -> Column:
        """The bytes of a row that has the message's fields in their order; null for a null row."""
        return self._call(self._java.encode(), row, F.lit(message), self._descriptors)

    def kafka_partition(self, key: Column, partitions: int) -> Column:
        """The partition that Kafka's own producer gives to this key: toPositive(murmur2(key)) % partitions."""
        return self._call(self._java.kafkaPartition(), key, F.lit(partitions))

    def lookup(self, key: Column, topic: str, message: str) -> Column:
        """The row of `message` that a keyed topic holds under the text `key`; null where it holds none.

        The topic is followed as a table in the JVM of each executor; the first answer waits until it was read.
        """
        row = self._spark._jsparkSession.parseDataType(row_schema.of(self._contract.message(message)).json())
        function = self._java.lookup(row, self._bootstrap, topic, message)
        return self._call(function, key, self._descriptors)

    def _row_with_payload(self, message: str) -> Any:
        row = row_schema.of(self._contract.message(message))
        fields = [StructField("row", row), StructField("payload", BinaryType()), StructField("problem", StringType())]
        return self._data_type(StructType(fields))

    def _data_type(self, declared: StructType) -> Any:
        return self._spark._jsparkSession.parseDataType(declared.json())

    def _call(self, function: Any, *arguments: Column) -> Column:
        return Column(function.apply(self._jvm.PythonUtils.toSeq([cast(Any, each)._jc for each in arguments])))
