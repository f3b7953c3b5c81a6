"""The Java functions of jvm/ as columns of one Spark session, and messages as Spark types, those of spark-protobuf.

A text that is a decimal (pipeline/decimals.py) is one in Spark, too.
"""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from math import inf
from typing import cast

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark program uses
from pyspark.sql import types as T  # noqa: N812  the name that every Spark program uses

from stream_processor.errors import ContractError
from stream_processor.pipeline.decimals import decimal_of
from stream_processor.pipeline.fields import TIMESTAMP, Contract
from stream_processor.spark_internals import Java, descriptor_set, java_column
from stream_processor.steps.json_texts import DECLARED

_UINT64 = T.DecimalType(20, 0)
_SCALARS: dict[int, T.DataType] = {
    FieldDescriptor.CPPTYPE_DOUBLE: T.DoubleType(),
    FieldDescriptor.CPPTYPE_FLOAT: T.FloatType(),
    FieldDescriptor.CPPTYPE_INT32: T.IntegerType(),
    FieldDescriptor.CPPTYPE_UINT32: T.LongType(),
    FieldDescriptor.CPPTYPE_INT64: T.LongType(),
    FieldDescriptor.CPPTYPE_UINT64: _UINT64,
    FieldDescriptor.CPPTYPE_BOOL: T.BooleanType(),
    FieldDescriptor.CPPTYPE_STRING: T.StringType(),
    FieldDescriptor.CPPTYPE_ENUM: T.StringType(),
}
_WIDER: dict[type[T.DataType], tuple[type[T.DataType], ...]] = {
    T.IntegerType: (T.LongType, T.DoubleType),
    T.LongType: (T.DoubleType,),
    T.FloatType: (T.DoubleType,),
    T.DecimalType: (T.DoubleType,),
}
_RANGES: dict[int, tuple[int, int | Decimal]] = {
    FieldDescriptor.CPPTYPE_INT32: (-(2**31), 2**31 - 1),
    FieldDescriptor.CPPTYPE_UINT32: (0, 2**32 - 1),
    FieldDescriptor.CPPTYPE_INT64: (-(2**63), 2**63 - 1),
    FieldDescriptor.CPPTYPE_UINT64: (0, Decimal(2**64 - 1)),
}
_HEADER = T.StructType().add("key", T.StringType()).add("value", T.BinaryType())
_RECORD = (
    T.StructType()
    .add("topic", T.StringType())
    .add("key", T.BinaryType())
    .add("value", T.BinaryType())
    .add("headers", T.ArrayType(_HEADER))
)
UNSIGNED = (FieldDescriptor.CPPTYPE_UINT32, FieldDescriptor.CPPTYPE_UINT64)
_DIGITS: dict[type[T.DataType], int] = {T.ByteType: 3, T.ShortType: 5, T.IntegerType: 10, T.LongType: 19}


class Functions:
    """Decodes, encodes, partitions, and looks up at `kafka`; signatures mirror from_protobuf and to_protobuf."""

    def __init__(self, spark: SparkSession, contract: Contract, kafka: Mapping[str, str] | None = None) -> None:
        """`kafka` has the options of Java's clients; without it, nothing can be looked up."""
        self._spark = spark
        self._contract = contract
        self._kafka = dict(kafka or {})
        self._descriptors = descriptor_set(spark, contract.descriptor_set)

    def decode_change(self, value: Column, message: str) -> Column:
        """Returns struct(row, payload, problem) of a change's bytes; null for null. `payload` is the row as received.

        No value raises.
        """
        return java_column(self._spark, "decodeChange", self._decoding(message), [value])

    def decode_row(self, value: Column, message: str) -> Column:
        """Returns struct(row, payload, problem) of a message's bytes, the payload; null for null. No value raises."""
        return java_column(self._spark, "decodeRow", self._decoding(message), [value])

    def row_from_texts(self, texts: Column, declared: Column, message: str) -> Column:
        """Returns struct(row, payload, problem) of a table's row of Debezium (RowFromTexts.java); null for null."""
        known = F.coalesce(declared, F.array().cast(DECLARED))
        return java_column(self._spark, "rowFromTexts", self._decoding(message), [texts, known])

    def contributions(self, units: DataFrame, column: str, entry: T.StructType, folds: list[str]) -> Column:
        """Adds a column of units up to an array of `entry`, a group once (Contributions.java); null for null.

        `folds` are the functions of GroupPart.java behind the `key` and the `rows` of an entry.
        """
        unit = cast(T.ArrayType, units.schema[column].dataType).elementType
        return java_column(self._spark, "contributions", [entry, unit, folds], [F.col(column)])

    def differences(self, entry: T.DataType, folds: list[str], lines: str, columns: Sequence[Column]) -> Column:
        """Returns the lines that a change adds to groups, by Differences.java; null where a column is null.

        `lines` is one of its Lines, and `columns` are its arguments.
        """
        return java_column(self._spark, "differences", [entry, folds, lines], columns)

    def dead_letter(self, letter: Column, pipeline: str, headers: list[str], rooms: dict[str, int]) -> Column:
        """Returns struct(topic, key, value, headers) of the record by which a letter is set aside (DeadLetter.java).

        Null for null. `headers` are the names of those that it adds, `rooms` the bytes that a letter may have beside
        these, by topic.
        """
        return java_column(self._spark, "deadLetter", [_RECORD, pipeline, headers, rooms], [letter])

    def encode(self, row: Column, message: str) -> Column:
        """Returns the bytes of a row that has the message's fields in their order; null for a null row."""
        return java_column(self._spark, "encode", [self._descriptors, message], [row])

    def kafka_partition(self, key: Column, partitions: int) -> Column:
        """Returns the partition that Kafka's own producer gives to this key: toPositive(murmur2(key)) % partitions."""
        return java_column(self._spark, "kafkaPartition", [], [key, F.lit(partitions)])

    def lookup(self, key: Column, topic: str, message: str) -> Column:
        """Returns the row of `message` that a keyed topic holds under the text `key`; null where it holds none.

        The topic is followed as a table in the JVM of each executor; the first lookup waits until it was read.
        """
        row = row_type(self._contract.message(message))
        return java_column(self._spark, "lookup", [row, self._kafka, topic, self._descriptors, message], [key])

    def _decoding(self, message: str) -> list[T.DataType | Java | str]:
        row = row_type(self._contract.message(message))
        decoded = T.StructType().add("row", row).add("payload", T.BinaryType()).add("problem", T.StringType())
        return [decoded, self._descriptors, message]


def row_type(message: Descriptor, within: tuple[str, ...] = ()) -> T.StructType:
    """Returns the struct of a message's fields in the order of their declaration.

    Raises ContractError for types no row can hold: maps, and messages that contain themselves (`within`: the messages
    on the way down).
    """
    if message.full_name in within:
        raise ContractError(f"{message.full_name} contains itself; a row cannot")
    inner = (*within, message.full_name)
    return T.StructType([T.StructField(field.name, _type(field, inner)) for field in message.fields])


def _type(field: FieldDescriptor, within: tuple[str, ...]) -> T.DataType:
    message, decimal = field.message_type, decimal_of(field)
    element: T.DataType
    if decimal is not None:
        element = T.DecimalType(decimal.precision, decimal.scale)
    elif message is None:
        element = T.BinaryType() if field.type == FieldDescriptor.TYPE_BYTES else _SCALARS[field.cpp_type]
    elif message.GetOptions().map_entry:
        raise ContractError(f"{field.full_name} is a map; a row cannot hold it")
    else:
        element = T.TimestampType() if message.full_name == TIMESTAMP else row_type(message, within)
    return T.ArrayType(element, containsNull=False) if field.is_repeated else element


def filled(message: Descriptor, columns: Mapping[str, Column]) -> Column:
    """Returns the message's row: its fields are `columns` by name, the others null."""
    fields = row_type(message).fields
    return F.struct(*[columns.get(each.name, F.lit(None)).cast(each.dataType).alias(each.name) for each in fields])


def within(value: Column, field: FieldDescriptor) -> Column:
    """Returns the value, null where an integer field cannot hold it: cast or encoded, it would be another number."""
    if field.cpp_type not in _RANGES:
        return value
    low, high = map(F.lit, _RANGES[field.cpp_type])
    if field.is_repeated:
        return F.when(F.forall(value.cast("array<decimal(20,0)>"), lambda each: each.between(low, high)), value)
    return F.when(value.between(low, high), value)


def fits(actual: T.DataType, declared: T.DataType) -> bool:
    """Returns whether all values of `actual` can be written where `declared` is declared; integers may become doubles.

    A decimal takes integers and decimals with no more digits, before the point or behind it.
    """
    if isinstance(actual, T.NullType) or actual == declared:
        return True
    if isinstance(actual, T.StructType) and isinstance(declared, T.StructType):
        pairs = zip(actual.fields, declared.fields, strict=False)
        return actual.names == declared.names and all(fits(a.dataType, b.dataType) for a, b in pairs)
    if isinstance(actual, T.ArrayType) and isinstance(declared, T.ArrayType):
        return actual.containsNull <= declared.containsNull and fits(actual.elementType, declared.elementType)
    if isinstance(declared, T.DecimalType) and declared != _UINT64:  # which takes nothing that could be negative
        before, behind = digits(actual)
        return before <= declared.precision - declared.scale and behind <= declared.scale
    return type(declared) in _WIDER.get(type(actual), ())


def digits(of_type: T.DataType) -> tuple[float, float]:
    """Returns the digits of a type's numbers before the point, and behind it; infinitely many where that is open."""
    if isinstance(of_type, T.DecimalType):
        return of_type.precision - of_type.scale, of_type.scale
    before = _DIGITS.get(type(of_type))
    return (inf, inf) if before is None else (before, 0)
