"""The Java functions of jvm/ as column functions of one Spark session."""

from typing import Any, cast

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark program uses
from pyspark.sql.types import StringType, StructField, StructType

from stream_processor import row_schema
from stream_processor.contract import Contract


class Functions:
    """Decodes, encodes and partitions; the signatures mirror from_protobuf and to_protobuf."""

    def __init__(self, spark: SparkSession, contract: Contract) -> None:
        self._spark = spark
        self._contract = contract
        self._descriptors = F.lit(bytearray(contract.descriptor_set))
        self._jvm = cast(Any, spark._jvm)
        self._java = self._jvm.io.statecast.spark.ColumnFunctions

    def decode(self, value: Column, message: str) -> Column:
        """struct(row, problem) of a message's bytes; exactly one of the two is null, and no value raises."""
        row = row_schema.of(self._contract.message(message))
        result = StructType([StructField("row", row), StructField("problem", StringType())])
        function = self._java.decode(self._spark._jsparkSession.parseDataType(result.json()))
        return self._call(function, value, F.lit(message), self._descriptors)

    def encode(self, row: Column, message: str) -> Column:
        """The bytes of a row that has the message's fields in their order; null for a null row."""
        return self._call(self._java.encode(), row, F.lit(message), self._descriptors)

    def kafka_partition(self, key: Column, partitions: int) -> Column:
        """The partition that Kafka's own producer gives to this key: toPositive(murmur2(key)) % partitions."""
        return self._call(self._java.kafkaPartition(), key, F.lit(partitions))

    def _call(self, function: Any, *arguments: Column) -> Column:
        return Column(function.apply(self._jvm.PythonUtils.toSeq([cast(Any, each)._jc for each in arguments])))
